import type { ErrorObject } from 'ajv';

export interface SchemaProblem {
  /** Property names, and indexes of list entries. */
  path: (string | number)[];
  /** Predicate of a sentence with the path as subject: "must be a string". */
  expected: string;
}

interface Finding {
  pointer: string;
  keyword: string;
  expected: string;
}

/**
 * Words a meta-schema's errors: the full requirement at each place, without repeats. Never quotes the value.
 *
 * @param errors in Ajv's order, with `verbose`
 */
export function metaSchemaProblems(schema: unknown, errors: readonly ErrorObject[]): SchemaProblem[] {
  const found: Finding[] = [];
  for (const error of errors) {
    if (error.keyword === 'anyOf') found.push(...ofChoice(error.instancePath, branchesOf(error.instancePath, found)));
    // Redundant: the error of the name precedes it.
    else if (error.keyword !== 'propertyNames') found.push(findingOf(error));
  }
  const distinct = new Map(found.map((finding) => [JSON.stringify([finding.pointer, finding.expected]), finding]));
  return [...distinct.values()].map(({ pointer, expected }) => ({ path: pathIn(schema, pointer), expected }));
}

/** Removes from the end of `found` the findings of a choice's branches. */
function branchesOf(pointer: string, found: Finding[]): Finding[] {
  const start = found.findLastIndex((finding) => finding.pointer !== pointer && !finding.pointer.startsWith(`${pointer}/`)) + 1;
  return found.splice(start);
}

/** Reports the branch that the value's type fits; if none does, lists what all branches accept. */
function ofChoice(pointer: string, branches: readonly Finding[]): Finding[] {
  const inside = branches.filter((finding) => finding.pointer !== pointer);
  if (inside.length > 0) return inside;
  const ofItsKind = branches.filter(({ keyword }) => keyword !== 'type' && keyword !== 'enum');
  if (ofItsKind.length > 0) return ofItsKind;
  const kinds = new Set(branches.map(({ expected }) => expected.replace(/^must be /, '')));
  return [{ pointer, keyword: 'anyOf', expected: `must be ${[...kinds].join(', or ')}` }];
}

function findingOf({ keyword, instancePath, propertyName, parentSchema, message }: ErrorObject): Finding {
  const pointer = propertyName === undefined ? instancePath : `${instancePath}/${propertyName.replaceAll('~', '~0').replaceAll('/', '~1')}`;
  const kind = parentSchema === undefined ? null : kindOf(parentSchema);
  return { pointer, keyword, expected: kind === null ? (message ?? `must satisfy ${keyword}`) : `must be ${kind}` };
}

type MetaSchema = Readonly<Record<string, unknown>>;

/** The values that a part of a meta-schema accepts; null: not specified there. */
function kindOf(part: MetaSchema): string | null {
  const { type, format, pattern, enum: values, minItems } = part;
  if (Array.isArray(values)) return `one of ${values.map((value) => JSON.stringify(value)).join(', ')}`;
  if (Array.isArray(type)) return 'a JSON Schema: an object, true or false';
  if (type === 'array' || minItems !== undefined) return listKind(part);
  if (type === 'integer' || type === 'number') return numberKind(part);
  if (type === 'boolean') return 'true or false';
  if (type === 'object') return objectKind(part);
  if (typeof pattern === 'string') return `a string that matches /${pattern}/`;
  const ofFormat = typeof format === 'string' ? FORMATS[format] : undefined;
  return ofFormat ?? (type === 'string' ? 'a string' : null);
}

const FORMATS: Readonly<Record<string, string>> = {
  expression: 'a regular expression',
  regex: 'a regular expression',
  uri: 'a URI',
  'uri-reference': 'a URI reference',
};

function listKind({ items, minItems, uniqueItems }: MetaSchema): string {
  const [one, many] = nounsOf(items) ?? VALUES;
  return `a list of ${minItems === 1 ? `at least one ${one}` : many}${uniqueItems === true ? ', none twice' : ''}`;
}

function numberKind({ type, minimum, exclusiveMinimum }: MetaSchema): string {
  const number = type === 'integer' ? 'a whole number' : 'a number';
  if (minimum !== undefined) return `${number}, at least ${minimum}`;
  return exclusiveMinimum === undefined ? number : `${number} greater than ${exclusiveMinimum}`;
}

function objectKind({ additionalProperties }: MetaSchema): string {
  const nouns = nounsOf(additionalProperties);
  return nouns === null ? 'an object' : `an object of ${nouns[1]}`;
}

type Nouns = readonly [one: string, many: string];
const VALUES: Nouns = ['value', 'values'];
const SCHEMAS: Nouns = ['schema', 'schemas'];
const REFERRED: Readonly<Record<string, Nouns>> = {
  '#': SCHEMAS,
  '#meta': SCHEMAS,
  simpleTypes: ['type', 'types'],
  stringArray: ['list of strings', 'lists of strings'],
};

/** Nouns for the entries of a list or object. Definitions are recognised by the end of their reference. */
function nounsOf(part: unknown): Nouns | null {
  const { type, $ref, $dynamicRef }: MetaSchema = Object(part);
  const reference = $ref ?? $dynamicRef;
  if (typeof reference === 'string') return REFERRED[reference.split('/').at(-1) ?? ''] ?? null;
  return type === 'string' ? ['string', 'strings'] : null;
}

function pathIn(schema: unknown, pointer: string): (string | number)[] {
  let inner = schema;
  return pointer
    .split('/')
    .slice(1)
    .map((segment) => {
      const name = segment.replaceAll('~1', '/').replaceAll('~0', '~');
      const isEntry = Array.isArray(inner);
      inner = typeof inner === 'object' && inner !== null ? Reflect.get(inner, name) : undefined;
      return isEntry ? Number(name) : name;
    });
}
