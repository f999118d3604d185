import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { canonicalJson } from './config/canonical-json.ts';
import { compile } from './schema/compile.ts';
import { dialectOf } from './schema/dialect.ts';
import type { SchemaProblem } from './schema/meta-schema-problems.ts';
import { SchemaError } from './schema/schema-error.ts';
import { refuseLargeText } from './schema/schema-text.ts';
import { pointerTo, type Violation } from './schema/violation.ts';

/** Returns the first violation, or null. Does not change the value. */
export type Validate = (value: unknown) => Violation | null;

/** Code that walks a value recurses as deep. */
export const MAX_VALUE_DEPTH = 64;
/** A schema describes values of that depth and contains values itself. */
const MAX_SCHEMA_DEPTH = 2 * MAX_VALUE_DEPTH;
/** Covers the routines and tools in use. */
const MAX_COMPILED = 512;

/** By the schema's hash. Errors are cached too, since finding them may take as long. */
const compiled = new LRUCache<string, Validate | SchemaError>({ max: MAX_COMPILED });

/**
 * Compiles a JSON Schema of draft 2020-12, or of draft-07 when `$schema` says so; cached by content. Formats are checked; nothing is fetched, no
 * default is filled in. Compiling and each check take bounded time for any schema and value: exceeding it in a check is a violation.
 *
 * @throws `config.invalid` for an invalid schema, a reference outside it, or one too large to compile or check in that time; `details` as in
 * `problemOfSchema`
 */
export function compileSchema(schema: Record<string, unknown>): Validate {
  const tooDeep = nestingViolation(schema, MAX_SCHEMA_DEPTH);
  if (tooDeep !== null) throw new SchemaError([], tooDeep.message);
  const text = canonicalJson(schema);
  const key = createHash('sha256').update(text).digest('base64');
  const outcome = compiled.get(key) ?? compileOrRefuse(schema, text.length);
  if (isOfStack(outcome)) throw outcome;
  compiled.set(key, outcome);
  if (outcome instanceof SchemaError) throw outcome;
  return outcome;
}

function compileOrRefuse(schema: Record<string, unknown>, sizeChars: number): Validate | SchemaError {
  try {
    return withDepthLimit(compile(schema, sizeChars));
  } catch (error) {
    if (error instanceof SchemaError) return error;
    throw error;
  }
}

/** A stack overflow depends on the caller's depth: it is not cached, since the next call may succeed. */
function isOfStack(outcome: Validate | SchemaError): outcome is SchemaError {
  return outcome instanceof SchemaError && outcome.cause instanceof RangeError;
}

/** Why a schema does not compile; null when it does. */
export function problemOfSchema(schema: Record<string, unknown>): { path: readonly string[]; expected: string } | null {
  try {
    compileSchema(schema);
    return null;
  } catch (error) {
    if (!(error instanceof SchemaError)) throw error;
    return { path: error.path, expected: error.expected };
  }
}

/**
 * All violations of the meta-schema, without compiling: values of the wrong type, invalid patterns, dangling references. Empty for a schema that is
 * too large or of another draft: compiling it reports that.
 */
export function metaSchemaProblemsOf(schema: Record<string, unknown>): SchemaProblem[] {
  if (nestingViolation(schema, MAX_SCHEMA_DEPTH) !== null) return [];
  try {
    refuseLargeText(schema, canonicalJson(schema).length);
    return dialectOf(schema).problemsOf(schema);
  } catch (error) {
    if (error instanceof SchemaError) return [];
    throw error;
  }
}

/** Null unless nested deeper than `maxDepth`. */
export function nestingViolation(value: unknown, maxDepth: number = MAX_VALUE_DEPTH): Violation | null {
  const path = pathToDeepest(value, maxDepth);
  if (path === null) return null;
  return nestedTooDeep(pointerTo(path), maxDepth);
}

/** @param path JSON Pointer of the first value that is too deep */
export function nestedTooDeep(path: string, maxDepth: number = MAX_VALUE_DEPTH): Violation {
  return { path, schemaPath: '#', keyword: 'maxDepth', message: `must not be nested deeper than ${maxDepth} levels` };
}

function withDepthLimit(validate: Validate): Validate {
  return (value) => nestingViolation(value) ?? validate(value);
}

/**
 * The path to the first value nested deeper than `levelsLeft`, null when there is none. No `Object.entries`: a body of 1 MiB may have 300,000
 * arrays and objects, and each would allocate a list.
 */
function pathToDeepest(value: unknown, levelsLeft: number): string[] | null {
  if (typeof value !== 'object' || value === null) return null;
  if (levelsLeft === 0) return [];
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) {
      const below = pathToDeepest(value[index], levelsLeft - 1);
      if (below !== null) return [String(index), ...below];
    }
    return null;
  }
  for (const key of Object.keys(value)) {
    const below = pathToDeepest(Reflect.get(value, key), levelsLeft - 1);
    if (below !== null) return [key, ...below];
  }
  return null;
}
