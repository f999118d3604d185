import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';

/** The check takes up to 0.6 ms per KiB in one go; compiling, where the schema is used, takes far longer. */
const MAX_SCHEMA_CHARS = 65_536;
/** As in `shared/json-schema.ts`. */
export const MAX_SCHEMA_DEPTH = 128;
const MAX_MESSAGE_CHARS = 256;
/** Their members are values, not schemas. */
const VALUE_KEYWORDS = new Set(['const', 'enum', 'default', 'examples', 'example']);

const options = { strict: false, validateFormats: false, logger: false } as const;
/** They compile only meta-schemas, each on first use. */
let newer: Ajv | null = null;
let older: Ajv | null = null;

/**
 * Why a tool's schema can't be passed to a model: no valid JSON Schema, an unresolvable reference, or an invalid pattern. Null when it
 * can. Not compiled, so the time is linear: the first check of arguments compiles it, as most listed tools are never called.
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
    // An unknown `$schema`.
    return error instanceof Error ? error.message.slice(0, MAX_MESSAGE_CHARS) : 'unknown';
  }
}

/** Recursion is bounded by the depth that the caller has checked. */
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

/** Anchors, and references by the schema's own `$id`, are left to the compiler. */
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
