import type { ErrorObject } from 'ajv';

/** One thing that keeps a value from being a JSON Schema. */
export interface SchemaProblem {
  /** Names, and numbers for the entries of lists. */
  path: (string | number)[];
  /** What is expected there, as the rest of a sentence whose subject is the path: "must be a string". */
  expected: string;
}

interface Finding {
  /** JSON Pointer. */
  pointer: string;
  keyword: string;
  expected: string;
}

/**
 * What a meta-schema's errors say, in our words: the whole of what is expected at a place, each once. The value found is not quoted.
 *
 * @param errors in the order in which Ajv lists them, with `verbose`
 */
export function metaSchemaProblems(schema: unknown, errors: readonly ErrorObject[]): SchemaProblem[] {
  const found: Finding[] = [];
  for (const error of errors) {
    if (error.keyword === 'anyOf') found.push(...ofChoice(error.instancePath, branchesOf(error.instancePath, found)));
    // It follows the error of the name.
    else if (error.keyword !== 'propertyNames') found.push(findingOf(error));
  }
  const distinct = new Map(found.map((finding) => [JSON.stringify([finding.pointer, finding.expected]), finding]));
  return [...distinct.values()].map(({ pointer, expected }) => ({ path: pathIn(schema, pointer), expected }));
}

/** Takes what the branches of a choice have found, which stands behind all else. */
function branchesOf(pointer: string, found: Finding[]): Finding[] {
  const start = found.findLastIndex((finding) => finding.pointer !== pointer && !finding.pointer.startsWith(`${pointer}/`)) + 1;
  return found.splice(start);
}

/** The branch that the value is of the kind for says what is wrong with it; where there is none, all of them say what they take. */
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

/** The values that a part of a meta-schema takes, null where it does not say. */
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

/** What the entries of a list or an object are called. Definitions are known by the end of the reference to them. */
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
