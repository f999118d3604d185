import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';

/** One schema's JSON. Checking its form takes up to 0.6 ms per KiB in one go; compiling it, where it is used, takes far more. */
const MAX_SCHEMA_CHARS = 65_536;
/** As deep as the compiler of `shared/json-schema.ts` goes. */
export const MAX_SCHEMA_DEPTH = 128;
const MAX_MESSAGE_CHARS = 256;
/** Their members are values and not schemas. */
const VALUE_KEYWORDS = new Set(['const', 'enum', 'default', 'examples', 'example']);

const options = { strict: false, validateFormats: false, logger: false } as const;
/** The meta-schemas alone are compiled here, each when it is first needed. */
let newer: Ajv | null = null;
let older: Ajv | null = null;

/**
 * Says what keeps a tool's schema from being passed on to a model: it is no JSON Schema, refers to what is not inside it, or holds a
 * pattern that is no regular expression. Null when nothing does. The schema itself is not compiled, so the time is linear in its length:
 * that is left to the first check of arguments, as most tools of a list are never called.
 *
 * @param schema nested no deeper than `MAX_SCHEMA_DEPTH`
 */
export function faultOfForm(schema: Record<string, unknown>): string | null {
  if (JSON.stringify(schema).length > MAX_SCHEMA_CHARS) return `it is larger than ${MAX_SCHEMA_CHARS} characters`;
  return faultByMetaSchema(schema) ?? faultWithin(schema, schema);
}

function dialectOf({ $schema: uri }: Record<string, unknown>): Ajv {
  if (typeof uri === 'string' && /draft-0[4-7]/.test(uri)) {
    older ??= new Ajv(options);
    return older;
  }
  newer ??= new Ajv2020(options);
  return newer;
}

function faultByMetaSchema(schema: Record<string, unknown>): string | null {
  const ajv = dialectOf(schema);
  try {
    if (ajv.validateSchema(schema) === true) return null;
    return ajv.errorsText(ajv.errors?.slice(0, 1), { dataVar: 'schema' }).slice(0, MAX_MESSAGE_CHARS);
  } catch (error) {
    // A `$schema` that is not known.
    return error instanceof Error ? error.message.slice(0, MAX_MESSAGE_CHARS) : 'unknown';
  }
}

/** The first reference or pattern that can't be used. Its recursion is bounded by the depth that was checked. */
function faultWithin(value: unknown, root: Record<string, unknown>): string | null {
  if (typeof value !== 'object' || value === null) return null;
  for (const [key, inner] of Object.entries(value)) {
    const fault = VALUE_KEYWORDS.has(key) ? null : (faultOfKeyword(key, inner, root) ?? faultWithin(inner, root));
    if (fault !== null) return fault.slice(0, MAX_MESSAGE_CHARS);
  }
  return null;
}

function faultOfKeyword(key: string, value: unknown, root: Record<string, unknown>): string | null {
  if (key === '$ref' && typeof value === 'string') return isInside(value, root) ? null : `can't resolve reference ${JSON.stringify(value)}`;
  if (key === 'pattern' && typeof value === 'string') return isExpression(value) ? null : `${JSON.stringify(value)} is no regular expression`;
  if (key !== 'patternProperties' || typeof value !== 'object' || value === null) return null;
  const broken = Object.keys(value).find((pattern) => !isExpression(pattern));
  return broken === undefined ? null : `${JSON.stringify(broken)} is no regular expression`;
}

/** Anchors, and references by an `$id` that the schema gives itself, are left to the compiler. */
function isInside(reference: string, root: Record<string, unknown>): boolean {
  if (!reference.startsWith('#')) return typeof root['$id'] === 'string' && !URL.canParse(reference);
  if (!reference.startsWith('#/')) return true;
  let node: unknown = root;
  for (const segment of reference.slice(2).split('/')) {
    const name = nameIn(segment);
    if (typeof node !== 'object' || node === null || !Object.hasOwn(node, name)) return false;
    node = Reflect.get(node, name);
  }
  return true;
}

function nameIn(segment: string): string {
  try {
    return decodeURIComponent(segment).replaceAll('~1', '/').replaceAll('~0', '~');
  } catch {
    return segment;
  }
}

function isExpression(pattern: string): boolean {
  try {
    return new RegExp(pattern, 'u') !== null;
  } catch {
    return false;
  }
}
