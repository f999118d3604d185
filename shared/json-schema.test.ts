import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SwitchyardError } from './errors/switchyard-error.ts';
import { compileSchema, nestingViolation, problemOfSchema } from './json-schema.ts';

const DRAFT_07 = 'http://json-schema.org/draft-07/schema#';

/** As text: an object with the property `then` looks like a promise. */
const CONDITIONAL: Record<string, unknown> = JSON.parse('{"if":{"properties":{"k":{"const":1}}},"then":{"required":["x"]}}');

/** Nested objects of that depth. */
function nested(levels: number): Record<string, unknown> {
  return levels === 1 ? {} : { a: nested(levels - 1) };
}

describe('compileSchema', () => {
  describe('refuses', () => {
    it.each<[string, Record<string, unknown>, string, RegExp]>([
      ['a keyword with a value of the wrong kind', { properties: { a: { type: 'objekt' } } }, 'properties.a.type', /^must be one of "array", .*, or a list of/],
      ['the same in draft-07', { $schema: DRAFT_07, items: [{ type: 'objekt' }] }, 'items.0.type', /^must be one of "array", .*, or a list of/],
      ['a reference to elsewhere', { properties: { a: { $ref: 'https://schemas.example/a.json' } } }, '', /refers to nothing outside itself/],
      ['a reference that leads nowhere', { $ref: '#/$defs/missing' }, '', /missing/],
      ['a draft that it does not know', { $schema: 'http://json-schema.org/draft-03/schema#' }, '$schema', /2020-12 or draft-07/],
      ['a pattern that is no expression', { pattern: '(' }, 'pattern', /must be a regular expression/],
      ['a pattern that looks ahead', { properties: { a: { items: { pattern: '^(?!b)a$' } } } }, 'properties.a.items.pattern', /look ahead or behind/],
      ['one that refers back', { properties: { a: { pattern: '(a)\\1' } } }, 'properties.a.pattern', /refer back/],
      ['such a pattern for names', { patternProperties: { '(?<=a)b': true } }, 'patternProperties.(?<=a)b', /look ahead or behind/],
      ['nesting without end', { properties: nested(200) }, '', /nested deeper than 128/],
      ['a schema of a megabyte', { description: 'a'.repeat(1_048_576) }, '', /larger than 131072/],
    ])('%s', (_what, schema, path, complaint) => {
      expect(() => compileSchema(schema)).toThrow(SwitchyardError);
      expect(() => compileSchema(schema)).toThrow(expect.objectContaining({ code: 'config.invalid' }));
      expect(problemOfSchema(schema)).toEqual({ path: path === '' ? [] : path.split('.'), expected: expect.stringMatching(complaint) });
    });
  });

  it.each<[string, Record<string, unknown>, unknown, string, string, string]>([
    ['a missing property', { required: ['a/b'] }, {}, '/a~1b', '#/required', 'required'],
    ['one missing further down', { properties: { a: { required: ['b~'] } } }, { a: {} }, '/a/b~0', '#/properties/a/required', 'required'],
    ['a property too many', { properties: { a: true }, additionalProperties: false }, { a: 1, b: 2 }, '/b', '#/additionalProperties', 'additionalProperties'],
    [
      'an unevaluated property',
      { allOf: [{ properties: { a: true } }], unevaluatedProperties: false },
      { a: 1, z: 1 },
      '/z',
      '#/unevaluatedProperties',
      'unevaluatedProperties',
    ],
    ['an unevaluated item', { prefixItems: [true], unevaluatedItems: false }, [1, 2], '', '#/unevaluatedItems', 'unevaluatedItems'],
    ['a property that another asks for', { dependentRequired: { a: ['b'] } }, { a: 1 }, '/b', '#/dependentRequired', 'dependentRequired'],
    ['a name that may not be', { propertyNames: { maxLength: 1 } }, { ab: 1 }, '/ab', '#/propertyNames', 'propertyNames'],
    ['the wrong type', { properties: { a: { items: { type: 'string' } } } }, { a: ['x', 1] }, '/a/1', '#/properties/a/items/type', 'type'],
    ['a place in a tuple', { prefixItems: [{ type: 'string' }], items: false }, ['a', 1], '', '#/items', 'items'],
    ['none of several', { properties: { a: { anyOf: [{ type: 'string' }, { type: 'null' }] } } }, { a: 1 }, '/a', '#/properties/a/anyOf', 'anyOf'],
    ['two of one', { oneOf: [{ type: 'object' }, { minProperties: 0 }] }, {}, '', '#/oneOf', 'oneOf'],
    ['what a condition asks for', CONDITIONAL, { k: 1 }, '/x', '#/then/required', 'required'],
    ['too few matching items', { contains: { type: 'number' }, minContains: 2 }, [1, 'a'], '', '#/contains', 'contains'],
    ['a definition', { $defs: { n: { type: 'integer' } }, properties: { a: { $ref: '#/$defs/n' } } }, { a: 1.5 }, '/a', '#/$defs/n/type', 'type'],
    [
      'a dynamic reference',
      { $dynamicAnchor: 'node', properties: { next: { $dynamicRef: '#node' } }, required: ['v'] },
      { v: 1, next: {} },
      '/next/v',
      '#/required',
      'required',
    ],
    ['a format', { properties: { a: { format: 'date-time' } } }, { a: 'yesterday' }, '/a', '#/properties/a/format', 'format'],
    [
      'items that repeat',
      { uniqueItems: true },
      [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
      '',
      '#/uniqueItems',
      'uniqueItems',
    ],
    ['a tuple of draft-07', { $schema: DRAFT_07, items: [{ type: 'string' }] }, [1], '/0', '#/items/0/type', 'type'],
    ['a dependency of draft-07', { $schema: DRAFT_07, dependencies: { a: ['b'] } }, { a: 1 }, '/b', '#/dependencies', 'dependencies'],
  ])('points to %s', (_what, schema, value, path, schemaPath, keyword) => {
    expect(compileSchema(schema)(value)).toEqual({ path, schemaPath, keyword, message: expect.stringMatching(/^(must|property|boolean)/) });
  });

  it('accepts valid values', () => {
    const validate = compileSchema({
      type: 'object',
      properties: { id: { type: 'string', format: 'uuid' }, tags: { type: 'array', items: { pattern: '^[a-z]+(-[a-z]+)*$' }, uniqueItems: true } },
      required: ['id'],
      unevaluatedProperties: false,
    });

    expect(validate({ id: '0190b1a0-7c3e-7bbb-8ccc-123456789abc', tags: ['a-b', 'c'] })).toBeNull();
  });

  describe.each(['constructor', 'toString', 'valueOf', 'hasOwnProperty', '__proto__'])('a property called %s, which objects inherit,', (name) => {
    const named = (value: unknown) => JSON.parse(`{${JSON.stringify(name)}: ${JSON.stringify(value)}}`) as Record<string, unknown>;

    it('is not there unless the value has it', () => {
      expect(compileSchema({ properties: named({ type: 'string' }) })({})).toBeNull();
      expect(compileSchema({ required: [name] })({})).toMatchObject({ path: `/${name}`, keyword: 'required' });
      expect(compileSchema({ dependentRequired: named(['b']) })({})).toBeNull();
      expect(compileSchema({ dependentSchemas: named({ required: ['b'] }) })({})).toBeNull();
      expect(compileSchema({ $schema: DRAFT_07, dependencies: named(['b']) })({})).toBeNull();
    });

    it('counts where the value has it', () => {
      expect(compileSchema({ required: [name] })(named(1))).toBeNull();
      expect(compileSchema({ additionalProperties: false })(named(1))).toMatchObject({ path: `/${name}`, keyword: 'additionalProperties' });
      expect(compileSchema({ unevaluatedProperties: false })(named(1))).toMatchObject({ path: `/${name}`, keyword: 'unevaluatedProperties' });
      expect(compileSchema({ propertyNames: { maxLength: 1 } })(named(1))).toMatchObject({ path: `/${name}`, keyword: 'propertyNames' });
      expect(compileSchema({ patternProperties: { '^[a-zA-Z_]+$': { type: 'string' } } })(named(1))).toMatchObject({ path: `/${name}`, keyword: 'type' });
      expect(compileSchema({ dependentRequired: named(['b']) })(named(1))).toMatchObject({ path: '/b', keyword: 'dependentRequired' });
      // Ajv reads no schema of a property called `__proto__`.
      if (name === '__proto__') return;
      expect(compileSchema({ properties: named({ type: 'string' }) })(named(1))).toMatchObject({ path: `/${name}`, keyword: 'type' });
      expect(compileSchema({ properties: named({ type: 'string' }), additionalProperties: false })(named('a'))).toBeNull();
    });
  });

  it('reads unknown keywords and formats as annotations', () => {
    expect(compileSchema({ 'x-order': 1, format: 'uint32' })('x')).toBeNull();
  });

  it.each(['https://json-schema.org/draft-07/schema#', 'http://json-schema.org/draft/2020-12/schema'])('accepts a draft with either scheme: %s', ($schema) => {
    expect(compileSchema({ $schema, type: 'string' })(1)?.keyword).toBe('type');
    expect(problemOfSchema({ $schema, type: 'objekt' })?.path).toEqual(['type']);
  });

  it('reports a violation for a value at which the generated code throws', () => {
    const check = compileSchema({
      if: { contains: { type: 'object' } },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      then: true,
      else: { additionalProperties: { contains: true, minContains: 0 }, prefixItems: [true] },
      patternProperties: { '^a': { minItems: 0 } },
    });

    expect(check({ a: null })?.keyword).toBe('unsupported');
    expect(check({ b: 1 })).toBeNull();
  });

  it('fills in no default and changes nothing', () => {
    const value = Object.freeze({ b: '1' });

    expect(compileSchema({ properties: { a: { default: 1 }, b: { type: ['string', 'number'] } } })(value)).toBeNull();
    expect(value).toEqual({ b: '1' });
    expect(compileSchema({ properties: { b: { type: 'number' } } })(value)?.keyword).toBe('type');
  });

  it('compiles equal schemas once, in whatever order their keys stand', () => {
    expect(compileSchema({ type: 'object', title: 'once' })).toBe(compileSchema({ title: 'once', type: 'object' }));
  });

  it('drops the least recently used schemas', () => {
    const first = compileSchema({ title: 'first' });
    const kept = compileSchema({ title: 'kept' });
    for (let index = 0; index < 600; index += 1) {
      compileSchema({ minLength: index });
      compileSchema({ title: 'kept' });
    }

    expect(compileSchema({ title: 'kept' })).toBe(kept);
    expect(compileSchema({ title: 'first' })).not.toBe(first);
  });

  it('lets two schemas have the same $id', () => {
    const number = compileSchema({ $id: 'https://schemas.example/a', type: 'number' });
    const text = compileSchema({ $id: 'https://schemas.example/a', type: 'string' });

    expect([number(1), text('a')]).toEqual([null, null]);
    expect([number('a')?.keyword, text(1)?.keyword]).toEqual(['type', 'type']);
  });

  it('refuses values that are nested too deep, where they begin to be', () => {
    expect(compileSchema({})(nested(64))).toBeNull();
    expect(compileSchema({})(nested(65))).toMatchObject({ path: '/a'.repeat(64), keyword: 'maxDepth' });
  });

  it('separates the patterns of schemas', () => {
    const validate = compileSchema({ properties: { a: { pattern: '^a$' }, b: { pattern: '^b$' } }, patternProperties: { '^c': { pattern: '^\\u0063$' } } });

    expect(validate({ a: 'a', b: 'b', c: 'c', cc: 'c' })).toBeNull();
    expect([{ a: 'b' }, { b: 'a' }, { c: 'a' }, { cc: 'u0063' }].map((value) => validate(value)?.path)).toEqual(['/a', '/b', '/c', '/cc']);
  });

  it('keeps the path of a violation short, however long a name is', () => {
    expect(compileSchema({ additionalProperties: false })({ ['n'.repeat(100_000)]: 1 })?.path.length).toBeLessThan(1_100);
  });
});

describe('nestingViolation', () => {
  it('finds nothing in any value of ordinary depth', () => {
    fc.assert(fc.property(fc.jsonValue({ maxDepth: 8 }), (value) => nestingViolation(value) === null));
  });
});
