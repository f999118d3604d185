import type { Violation } from '#shared/schema/violation.ts';

const ARTICLES: Readonly<Record<string, string>> = { array: 'an array', integer: 'an integer', object: 'an object', null: 'null' };

/** Where the message of the validator says less than is known, or the same twice. Other messages are plain: `must be >= 1`. */
const WORDS: Readonly<Record<string, (message: string) => string>> = {
  required: () => 'is missing',
  dependentRequired: (message) => `is missing: the input ${message}`,
  dependencies: (message) => `is missing: the input ${message}`,
  additionalProperties: () => 'is not among the properties of the schema',
  unevaluatedProperties: () => 'is not among the properties of the schema',
  propertyNames: () => 'has a name that the schema does not allow',
  'false schema': () => 'must not be there',
  enum: () => 'is none of the values that the schema lists',
  const: () => 'is not the one value that the schema allows',
  oneOf: () => 'must fit exactly one of the choices of the schema',
  anyOf: () => 'fits none of the choices of the schema',
  not: () => 'fits what the schema excludes',
  if: () => 'does not fit the condition of the schema',
  type: (message) =>
    `must be ${message
      .replace(/^must be /, '')
      .split(',')
      .map(named)
      .join(' or ')}`,
};

/** What a caller reads: the field by its path, and what is wrong with it. */
export function inputViolation({ path, keyword, message }: Violation): string {
  const words = (WORDS[keyword]?.(message) ?? message).replaceAll('must NOT', 'must not');
  return `${path === '' ? 'it' : path} ${words}`;
}

function named(type: string): string {
  return ARTICLES[type] ?? `a ${type}`;
}
