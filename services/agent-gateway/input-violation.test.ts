import { expect, it } from 'vitest';
import { compileSchema } from '#shared/json-schema.ts';
import { inputViolation } from './input-violation.ts';

it.each([
  [{ required: ['claim'] }, {}, '/claim is missing'],
  [{ properties: { order: { required: ['id'] } } }, { order: {} }, '/order/id is missing'],
  [{ properties: { parts: { items: { type: 'integer' } } } }, { parts: [1, 'two'] }, '/parts/1 must be an integer'],
  [{ properties: { a: { type: ['string', 'null'] } } }, { a: 1 }, '/a must be a string or null'],
  [{ type: 'object' }, [], 'it must be an object'],
  [{ additionalProperties: false }, { b: 1 }, '/b is not among the properties of the schema'],
  [{ properties: { a: { enum: ['x'] } } }, { a: 1 }, '/a is none of the values that the schema lists'],
  [{ properties: { a: { oneOf: [{ type: 'string' }, { type: 'null' }] } } }, { a: 1 }, '/a must fit exactly one of the choices of the schema'],
  [{ properties: { a: { not: {} } } }, { a: 1 }, '/a fits what the schema excludes'],
  [{ properties: { a: false } }, { a: 1 }, '/a must not be there'],
  [{ properties: { a: { minimum: 3 } } }, { a: 1 }, '/a must be >= 3'],
  [{ properties: { a: { minLength: 3 } } }, { a: 'x' }, '/a must not have fewer than 3 characters'],
  [{ propertyNames: { maxLength: 1 } }, { long: 1 }, '/long has a name that the schema does not allow'],
  [{ dependentRequired: { a: ['b'] } }, { a: 1 }, '/b is missing: the input must have property b when property a is present'],
])('%j refuses %j with: %s', (schema, value, words) => {
  const violation = compileSchema({ $schema: 'https://json-schema.org/draft/2020-12/schema', ...schema })(value);

  expect(violation && inputViolation(violation)).toBe(words);
});
