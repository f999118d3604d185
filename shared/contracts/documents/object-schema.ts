import { z } from 'zod';

/** Schemas deeper than this are refused: checking a value against one would recurse as deep. */
const MAX_SCHEMA_DEPTH = 64;

const TYPES = new Set(['object', 'array', 'string', 'number', 'integer', 'boolean', 'null']);

/**
 * A JSON Schema (draft 2020-12) of an object. Checked here is that it means what it seems to: keywords have values of the right kind,
 * patterns compile, references lead somewhere in the same schema, and the root takes objects. A mistyped schema is therefore found when
 * the agent starts and not when the first input arrives. Keywords that are not known are kept: the standard makes them annotations.
 */
export const objectSchema = z.record(z.string(), z.unknown()).superRefine((schema, context) => {
  const report: Report = (path, message) => context.addIssue({ code: 'custom', path, message });
  const root = schema.type;
  const takesObjects = root === undefined || root === 'object' || (Array.isArray(root) && root.includes('object'));
  if (!takesObjects) report(['type'], 'must be or include "object"');
  checkSchema(schema, [], { root: schema, report });
});

type Path = (string | number)[];
type Report = (path: Path, message: string) => void;
interface Walk {
  root: Record<string, unknown>;
  report: Report;
}
type Check = (value: unknown, path: Path, walk: Walk) => void;

function checkSchema(schema: unknown, path: Path, walk: Walk): void {
  if (typeof schema === 'boolean') return;
  if (!isObject(schema)) walk.report(path, 'must be a JSON Schema: an object, true or false');
  else if (path.length > MAX_SCHEMA_DEPTH) walk.report(path, `must not be nested deeper than ${MAX_SCHEMA_DEPTH} levels`);
  else for (const [keyword, value] of Object.entries(schema)) KEYWORDS.get(keyword)?.(value, [...path, keyword], walk);
}

const listOfSchemas: Check = (value, path, walk) => {
  if (!Array.isArray(value) || value.length === 0) walk.report(path, 'must be a list of at least one schema');
  else for (const [index, schema] of value.entries()) checkSchema(schema, [...path, index], walk);
};

const mapOfSchemas: Check = (value, path, walk) => {
  if (!isObject(value)) walk.report(path, 'must be an object of schemas');
  else for (const [name, schema] of Object.entries(value)) checkSchema(schema, [...path, name], walk);
};

const mapOfPatterns: Check = (value, path, walk) => {
  mapOfSchemas(value, path, walk);
  if (isObject(value)) for (const name of Object.keys(value)) pattern(name, [...path, name], walk);
};

const pattern: Check = (value, path, { report }) => {
  if (typeof value !== 'string' || !compiles(value)) report(path, 'must be a regular expression');
};

const listOfNames: Check = (value, path, { report }) => {
  if (!Array.isArray(value) || value.some((name) => typeof name !== 'string')) report(path, 'must be a list of names');
};

const mapOfNames: Check = (value, path, walk) => {
  if (!isObject(value)) walk.report(path, 'must be an object of lists of names');
  else for (const [name, names] of Object.entries(value)) listOfNames(names, [...path, name], walk);
};

const type: Check = (value, path, { report }) => {
  const names: unknown[] = Array.isArray(value) ? value : [value];
  const fits = names.length > 0 && new Set(names).size === names.length && names.every((name) => typeof name === 'string' && TYPES.has(name));
  if (!fits) report(path, `must be one or several of ${[...TYPES].join(', ')}`);
};

const values: Check = (value, path, { report }) => {
  if (!Array.isArray(value) || value.length === 0) report(path, 'must be a list of at least one value');
};

const number: Check = (value, path, { report }) => {
  if (typeof value !== 'number') report(path, 'must be a number');
};

const factor: Check = (value, path, { report }) => {
  if (typeof value !== 'number' || value <= 0) report(path, 'must be a number greater than 0');
};

const count: Check = (value, path, { report }) => {
  if (!Number.isInteger(value) || Number(value) < 0) report(path, 'must be a whole number, at least 0');
};

const truth: Check = (value, path, { report }) => {
  if (typeof value !== 'boolean') report(path, 'must be true or false');
};

/** Only what the schema itself holds: nothing is ever fetched. */
const reference: Check = (value, path, { root, report }) => {
  if (typeof value !== 'string' || !value.startsWith('#')) report(path, 'must be a reference into the same schema, like #/$defs/name');
  else if ((value === '#' || value.startsWith('#/')) && !leadsSomewhere(value, root)) report(path, `leads nowhere: there is no ${value}`);
};

const KEYWORDS: ReadonlyMap<string, Check> = new Map([
  ...named(['additionalProperties', 'contains', 'else', 'if', 'items', 'not', 'propertyNames', 'then'], checkSchema),
  ...named(['unevaluatedItems', 'unevaluatedProperties'], checkSchema),
  ...named(['allOf', 'anyOf', 'oneOf', 'prefixItems'], listOfSchemas),
  ...named(['$defs', 'definitions', 'dependentSchemas', 'properties'], mapOfSchemas),
  ...named(['patternProperties'], mapOfPatterns),
  ...named(['pattern'], pattern),
  ...named(['required'], listOfNames),
  ...named(['dependentRequired'], mapOfNames),
  ...named(['type'], type),
  ...named(['enum'], values),
  ...named(['exclusiveMaximum', 'exclusiveMinimum', 'maximum', 'minimum'], number),
  ...named(['multipleOf'], factor),
  ...named(['maxContains', 'maxItems', 'maxLength', 'maxProperties', 'minContains', 'minItems', 'minLength', 'minProperties'], count),
  ...named(['uniqueItems'], truth),
  ...named(['$ref', '$dynamicRef'], reference),
]);

function named(keywords: string[], check: Check): [string, Check][] {
  return keywords.map((keyword) => [keyword, check]);
}

function leadsSomewhere(pointer: string, root: unknown): boolean {
  let place = root;
  for (const segment of pointer.split('/').slice(1)) {
    const name = decode(segment).replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof place !== 'object' || place === null || !Object.hasOwn(place, name)) return false;
    place = Reflect.get(place, name);
  }
  return isObject(place) || typeof place === 'boolean';
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

function compiles(expression: string): boolean {
  try {
    new RegExp(expression, 'u');
    return true;
  } catch {
    return false;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
