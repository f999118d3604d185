import { createHash } from 'node:crypto';
import { Ajv, type ErrorObject, type Options } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { canonicalJson } from './config/canonical-json.ts';
import { SwitchyardError } from './errors/switchyard-error.ts';
import { judgePattern } from './pattern-safety.ts';

/** Where and how a value breaks a JSON Schema. */
export interface Violation {
  /** JSON Pointer of the value; of the missing property when one is missing. */
  path: string;
  schemaPath: string;
  keyword: string;
  /** What is wanted there: "must be string". It quotes nothing of the value but names of properties. */
  message: string;
}

/** Returns the first violation, null when there is none. It changes nothing in the value. */
export type Validate = (value: unknown) => Violation | null;

/** Objects and arrays within each other. Code that walks a value recurses as deep. */
const MAX_VALUE_DEPTH = 64;
/** A schema may describe as deep a value, and holds values itself. */
const MAX_SCHEMA_DEPTH = 2 * MAX_VALUE_DEPTH;
/** A schema's JSON. One that is all branches takes a second per 64 KiB to compile. */
const MAX_SCHEMA_CHARS = 131_072;
/**
 * An expression that is no danger may still need time with the square of the text's length, or its cube. A longer text does not match;
 * for expressions whose time is known to grow with the text alone there is no limit.
 */
const MAX_SLOW_PATTERN_TEXT_CHARS = 4_096;
/** A violation's path names properties of the value, which may be of any length. */
const MAX_PATH_CHARS = 1_024;
/** Compiled schemas that are kept: those of the routines and the tools in use. */
const MAX_COMPILED = 512;

const compiled = new Map<string, Validate>();

/**
 * Makes the check for a JSON Schema of draft 2020-12, or of draft-07 when `$schema` says so. Formats are checked, nothing is fetched,
 * no default is filled in. The same schema is compiled once.
 *
 * @throws `config.invalid` for what is no such schema, refers outside itself, or holds a pattern that could block the process; `details`
 *   as in `problemOfSchema`
 */
export function compileSchema(schema: Record<string, unknown>): Validate {
  const tooDeep = nestingViolation(schema, MAX_SCHEMA_DEPTH);
  if (tooDeep !== null) throw invalid([], tooDeep.message);
  const text = canonicalJson(schema);
  const key = createHash('sha256').update(text).digest('base64');
  const known = compiled.get(key);
  const validate = known ?? withDepthLimit(compile(schema, text.length));
  compiled.delete(key);
  compiled.set(key, validate);
  for (const oldest of compiled.keys()) {
    if (compiled.size <= MAX_COMPILED) break;
    compiled.delete(oldest);
  }
  return validate;
}

/** What keeps a schema from being compiled: the place in the schema, and what is wanted there. Null when it compiles. */
export function problemOfSchema(schema: Record<string, unknown>): { path: readonly string[]; wanted: string } | null {
  try {
    compileSchema(schema);
    return null;
  } catch (error) {
    if (!(error instanceof SchemaError)) throw error;
    return { path: error.path, wanted: error.wanted };
  }
}

/** Finds what is nested deeper than values may be, wherever they come from. Null when nothing is. */
export function nestingViolation(value: unknown, maxDepth: number = MAX_VALUE_DEPTH): Violation | null {
  const path = pathToDeepest(value, maxDepth);
  if (path === null) return null;
  return { path: pointerTo(path), schemaPath: '#', keyword: 'maxDepth', message: `must not be nested deeper than ${maxDepth} levels` };
}

class SchemaError extends SwitchyardError {
  readonly path: readonly string[];
  readonly wanted: string;

  constructor(path: readonly string[], wanted: string, cause: unknown) {
    super('config.invalid', `the JSON Schema can not be used: ${path.length === 0 ? 'it' : path.join('.')} ${wanted}`, { cause, details: { path, wanted } });
    this.path = path;
    this.wanted = wanted;
  }
}

/** @param path null when the place is not known */
function invalid(path: readonly string[] | null, wanted: string, cause?: unknown): SchemaError {
  return new SchemaError(path ?? [], wanted, cause);
}

function withDepthLimit(validate: Validate): Validate {
  return (value) => nestingViolation(value) ?? validate(value);
}

interface Dialect {
  create(options: Options): Ajv;
  /** Checks schemas themselves. Made when it is first needed, for that takes a while. */
  meta: Ajv | null;
}
const draft2020: Dialect = { create: (options) => new Ajv2020(options), meta: null };
const draft07: Dialect = { create: (options) => new Ajv(options), meta: null };

function dialectOf({ $schema: uri }: Record<string, unknown>): Dialect {
  const name = typeof uri === 'string' ? uri.replace(/#$/, '').replace(/^https?:\/\//, '') : uri;
  if (name === undefined || name === 'json-schema.org/draft/2020-12/schema') return draft2020;
  if (name === 'json-schema.org/draft-07/schema') return draft07;
  throw invalid(['$schema'], 'must be draft 2020-12 or draft-07');
}

/** Unknown keywords and formats are annotations, as the standard has it. */
const common = { strict: false, allErrors: false, logger: false } as const satisfies Options;

function compile(schema: Record<string, unknown>, sizeChars: number): Validate {
  if (sizeChars > MAX_SCHEMA_CHARS) throw invalid([], `must not be larger than ${MAX_SCHEMA_CHARS} characters`);
  const dialect = dialectOf(schema);
  dialect.meta ??= dialect.create(common);
  if (dialect.meta.validateSchema(schema) !== true) {
    const wrong = firstOf(dialect.meta.errors);
    throw invalid(segmentsOf(wrong?.path ?? ''), wrong?.message ?? 'must be a JSON Schema');
  }
  try {
    // One instance for each schema: an instance keeps what it has compiled for ever, and two schemas may claim the same $id.
    const ajv = dialect.create({ ...common, meta: false, validateSchema: false, code: { regExp: safeRegExp(schema) } });
    addFormats.default(ajv);
    ajv.removeKeyword('uniqueItems').addKeyword({ keyword: 'uniqueItems', type: 'array', schemaType: 'boolean', compile: uniqueItems, error: DUPLICATES });
    const validate = ajv.compile(schema);
    return (value) => (validate(value) === true ? null : firstOf(validate.errors));
  } catch (cause) {
    if (cause instanceof SchemaError) throw cause;
    throw invalid([], `must be a JSON Schema that refers to nothing outside itself (${cause instanceof Error ? cause.message : 'unknown fault'})`, cause);
  }
}

const DUPLICATES = { message: 'must NOT have duplicate items' };

/** Ajv's own compares each item with each other: with a hundred thousand objects that takes minutes. */
function uniqueItems(isWanted: boolean): (items: readonly unknown[]) => boolean {
  return (items) => !isWanted || new Set(items.map((item) => canonicalJson(item))).size === items.length;
}

/** Called with each pattern of a schema while it is compiled. */
function safeRegExp(schema: Record<string, unknown>) {
  const engine = (pattern: string, flags: string) => {
    const expression = expressionOf(pattern, flags);
    if (expression === null) throw invalid(pathToPattern(schema, pattern), 'must be a regular expression');
    const { problem, isLinear } = judgePattern(pattern);
    if (problem !== null) throw invalid(pathToPattern(schema, pattern), problem);
    const test = (text: string) => (isLinear || text.length <= MAX_SLOW_PATTERN_TEXT_CHARS) && expression.test(text);
    return { test, toString: () => expression.toString() };
  };
  // Ajv asks for the code of the engine, for validators that are written to files. Ours are not.
  return Object.assign(engine, { code: 'new RegExp' });
}

function expressionOf(pattern: string, flags: string): RegExp | null {
  try {
    return new RegExp(pattern, flags);
  } catch {
    return null;
  }
}

/** Where in the schema the pattern stands first. */
function pathToPattern(schema: unknown, pattern: string): string[] | null {
  if (typeof schema !== 'object' || schema === null) return null;
  for (const [key, value] of Object.entries(schema)) {
    if (key === 'pattern' && value === pattern) return [key];
    if (key === 'patternProperties' && typeof value === 'object' && value !== null && Object.hasOwn(value, pattern)) return [key, pattern];
    const below = pathToPattern(value, pattern);
    if (below !== null) return [key, ...below];
  }
  return null;
}

/**
 * Of the errors of a value the one that a person means by "the first": that of a choice comes after those of its options, which say
 * little by themselves, while that of a condition comes after what it asked for.
 */
function firstOf(errors: readonly ErrorObject[] | null | undefined): Violation | null {
  const last = errors?.findLast(({ keyword }) => keyword !== 'if') ?? errors?.[0];
  if (last === undefined) return null;
  const { instancePath, schemaPath, keyword, message } = last;
  return { path: cut(`${instancePath}${extraSegmentOf(last)}`), schemaPath, keyword, message: message ?? `must satisfy ${keyword}` };
}

/** The property that is missing or one too many, which Ajv names beside the path of its object. */
function extraSegmentOf({ params }: ErrorObject): string {
  for (const name of ['missingProperty', 'additionalProperty', 'unevaluatedProperty', 'propertyName']) {
    const property: unknown = params[name];
    if (typeof property === 'string') return pointerTo([property]);
  }
  return '';
}

function cut(path: string): string {
  return path.length > MAX_PATH_CHARS ? `${path.slice(0, MAX_PATH_CHARS)}…` : path;
}

function pointerTo(segments: readonly string[]): string {
  return cut(segments.map((segment) => `/${segment.replaceAll('~', '~0').replaceAll('/', '~1')}`).join(''));
}

function segmentsOf(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** The path to something nested deeper than so many objects and arrays, null when there is none. Its recursion ends there as well. */
function pathToDeepest(value: unknown, levelsLeft: number): string[] | null {
  if (typeof value !== 'object' || value === null) return null;
  if (levelsLeft === 0) return [];
  for (const [key, inner] of Object.entries(value)) {
    const below = pathToDeepest(inner, levelsLeft - 1);
    if (below !== null) return [key, ...below];
  }
  return null;
}
