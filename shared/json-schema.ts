import { createHash } from 'node:crypto';
import { canonicalJson } from './config/canonical-json.ts';
import { compile } from './schema/compile.ts';
import { dialectOf } from './schema/dialect.ts';
import type { SchemaProblem } from './schema/meta-schema-problems.ts';
import { SchemaError } from './schema/schema-error.ts';
import { refuseLargeText } from './schema/schema-text.ts';
import { pointerTo, type Violation } from './schema/violation.ts';

/** Returns the first violation, null when there is none. It changes nothing in the value. */
export type Validate = (value: unknown) => Violation | null;

/** Objects and arrays within each other. Code that walks a value recurses as deep. */
const MAX_VALUE_DEPTH = 64;
/** A schema may describe as deep a value, and holds values itself. */
const MAX_SCHEMA_DEPTH = 2 * MAX_VALUE_DEPTH;
/** Compiled schemas that are kept: those of the routines and the tools in use. */
const MAX_COMPILED = 512;

/** By the hash of a schema: its check, or why it has none, which may take as long to find. */
const compiled = new Map<string, Validate | SchemaError>();

/**
 * Makes the check for a JSON Schema of draft 2020-12, or of draft-07 when `$schema` says so. Formats are checked, nothing is fetched,
 * no default is filled in. The same schema is compiled once. Compiling and each check take a bounded time, whatever schema and value are:
 * a value that takes longer to check is a violation.
 *
 * @throws `config.invalid` for what is no such schema, refers outside itself, or is too large to be compiled or checked in that time;
 *   `details` as in `problemOfSchema`
 */
export function compileSchema(schema: Record<string, unknown>): Validate {
  const tooDeep = nestingViolation(schema, MAX_SCHEMA_DEPTH);
  if (tooDeep !== null) throw new SchemaError([], tooDeep.message);
  const text = canonicalJson(schema);
  const key = createHash('sha256').update(text).digest('base64');
  const outcome = compiled.get(key) ?? compileOrRefuse(schema, text.length);
  if (isOfStack(outcome)) throw outcome;
  compiled.delete(key);
  compiled.set(key, outcome);
  for (const oldest of compiled.keys()) {
    if (compiled.size <= MAX_COMPILED) break;
    compiled.delete(oldest);
  }
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

/** Whether the stack had no room: how much there is depends on the caller, so the next one may compile the same schema. */
function isOfStack(outcome: Validate | SchemaError): outcome is SchemaError {
  return outcome instanceof SchemaError && outcome.cause instanceof RangeError;
}

/** What keeps a schema from being compiled: the place in the schema, and what is wanted there. Null when it compiles. */
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
 * Everything that the meta-schema finds wrong in a schema of a document, without compiling it: values of the wrong kind, patterns that are
 * no expressions, references that lead nowhere in it. Nothing for a schema that is too large or of another draft: that is the one thing
 * which compiling it says.
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

/** Finds what is nested deeper than values may be, wherever they come from. Null when nothing is. */
export function nestingViolation(value: unknown, maxDepth: number = MAX_VALUE_DEPTH): Violation | null {
  const path = pathToDeepest(value, maxDepth);
  if (path === null) return null;
  return { path: pointerTo(path), schemaPath: '#', keyword: 'maxDepth', message: `must not be nested deeper than ${maxDepth} levels` };
}

function withDepthLimit(validate: Validate): Validate {
  return (value) => nestingViolation(value) ?? validate(value);
}

/**
 * The path to something nested deeper than so many objects and arrays, null when there is none. Its recursion ends there as well. Lists of
 * entries are not made: a body of 1 MiB may have 300,000 arrays and objects, and each of them would need one.
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
