import { expect, it } from 'vitest';
import { z } from 'zod';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import { zodValidation } from './zod-validation.ts';

const schema = z.object({ name: z.string().min(1).optional(), items: z.array(z.looseObject({ tags: z.array(z.string()).max(3) })).optional() });
const { compiler, compilerUnless } = zodValidation(
  (error) => new SwitchyardError('request.invalid', 'invalid', { details: { param: error.issues[0]?.path.join('.') } }),
);
/** Without a primitive form. */
const odd = { length: { toString: 1, valueOf: 1 } };
const options = { schema, method: 'POST', url: '/' };

it.each([
  ['the whole', odd, ''],
  ['a text', { name: odd }, 'name'],
  ['a list in a list', { items: [{ tags: ['a'] }, { tags: odd }] }, 'items.1.tags'],
])('refuses an object in place of %s whose length cannot be compared, and names it', (_, data, param) => {
  // A schema that compares a length throws for it.
  const limited = param === '' ? { ...options, schema: z.array(z.string()).min(1) } : options;
  expect(() => limited.schema.safeParse(data)).toThrow(TypeError);
  expect(compiler(limited)(data)).toMatchObject({ error: { code: 'request.invalid', details: { param } } });
});

it('leaves the verdict to the schema where the check before it throws', () => {
  const throwing = () => {
    throw new TypeError('no primitive form');
  };
  expect(compilerUnless(throwing)(options)({ name: 'a' })).toEqual({ value: { name: 'a' } });
  expect(compilerUnless(throwing)(options)({ name: '' })).toMatchObject({ error: { details: { param: 'name' } } });
});

it('says of a parameter of a query that it is missing, or given more than once, and not that it must be a text', () => {
  const messages = zodValidation((error) => new SwitchyardError('request.invalid', error.issues[0]?.message ?? ''));
  const query = messages.compiler({ ...options, schema: z.object({ limit: z.string().regex(/^\d+$/, 'must be a whole number') }), httpPart: 'querystring' });

  expect(query({})).toMatchObject({ error: { message: 'is missing' } });
  expect(query({ limit: ['1', '2'] })).toMatchObject({ error: { message: 'must be given once' } });
  expect(query({ limit: 'x' })).toMatchObject({ error: { message: 'must be a whole number' } });
});
