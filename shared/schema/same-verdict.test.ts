import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import { compileSchema, type Validate } from '../json-schema.ts';

const NAMES = ['a', 'b', 'ab', 'a/b', '~'];
const PATTERNS = ['^a', 'b$', '^[a-z]{1,2}$', '\\s', '^(?:a|b)+$', '.'];
/** Plain Ajv, without meta-schema checks, which take 0.1 s per instance. */
const PLAIN = { strict: false, logger: false, meta: false, validateSchema: false } as const;
const DRAFT_07 = { $schema: 'http://json-schema.org/draft-07/schema#' };

const name = fc.constantFrom(...NAMES);
const scalar = fc.oneof(fc.constantFrom<unknown>(null, true, false, 0, 1, 2.5, -1), fc.constantFrom('', 'a', 'b', 'ab', 'abc', 'a b', '2020-01-01', 'a@b.cc'));
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    scalar,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(name, tie('value'), { maxKeys: 4, noNullPrototype: true }),
  ),
}));

function keywordsOf(schema: fc.Arbitrary<unknown>, references: readonly string[]): fc.Arbitrary<Record<string, unknown>>[] {
  const under = (keyword: string, inner: fc.Arbitrary<unknown>) => inner.map((some) => ({ [keyword]: some }));
  const schemas = fc.array(schema, { minLength: 1, maxLength: 3 });
  const byName = fc.dictionary(name, schema, { maxKeys: 3, noNullPrototype: true });
  const names = fc.uniqueArray(name, { maxLength: 3 });
  const count = fc.integer({ min: 0, max: 3 });
  return [
    under('type', fc.constantFrom<unknown>('object', 'array', 'string', 'number', 'integer', 'boolean', ['string', 'null'])),
    under('$ref', fc.constantFrom(...references)),
    ...['allOf', 'anyOf', 'oneOf'].map((keyword) => under(keyword, schemas)),
    ...['not', 'items', 'contains', 'additionalProperties'].map((keyword) => under(keyword, schema)),
    under('properties', byName),
    under('patternProperties', fc.dictionary(fc.constantFrom(...PATTERNS), schema, { maxKeys: 2, noNullPrototype: true })),
    under('propertyNames', schema),
    under('required', names),
    under('enum', fc.uniqueArray(value, { minLength: 1, maxLength: 4, selector: (some) => JSON.stringify(some) })),
    under('const', value),
    under('uniqueItems', fc.boolean()),
    under('pattern', fc.constantFrom(...PATTERNS)),
    under('format', fc.constantFrom('date', 'email', 'uri', 'uuid', 'url', 'hostname', 'unknown')),
    ...['minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties', 'minimum', 'exclusiveMaximum'].map((keyword) =>
      under(keyword, count),
    ),
    fc.tuple(schema, schema, schema).map(([condition, consequence, alternative]) =>
      Object.fromEntries([
        ['if', condition],
        ['then', consequence],
        ['else', alternative],
      ]),
    ),
  ];
}

function schemaOf(references: readonly string[], more: (schema: fc.Arbitrary<unknown>) => fc.Arbitrary<Record<string, unknown>>[]): fc.Arbitrary<unknown> {
  const { schema } = fc.letrec<{ schema: unknown }>((tie) => ({
    schema: fc.oneof(
      { maxDepth: 3, depthSize: 'small' },
      fc.constantFrom<unknown>(true, false, {}, { type: 'string' }, { type: 'object' }),
      fc
        .array(fc.oneof(...keywordsOf(tie('schema'), references), ...more(tie('schema'))), { minLength: 1, maxLength: 3 })
        .map((parts) => Object.assign({}, ...parts)),
    ),
  }));
  return schema;
}

const schema2020 = schemaOf(['#', '#/$defs/x', '#/$defs/y', '#anchored'], (schema) => [
  fc.record({ prefixItems: fc.array(schema, { minLength: 1, maxLength: 2 }) }),
  fc.record({ unevaluatedProperties: schema }),
  fc.record({ unevaluatedItems: schema }),
  fc.record({ dependentSchemas: fc.dictionary(name, schema, { maxKeys: 2, noNullPrototype: true }) }),
  fc.record({ dependentRequired: fc.dictionary(name, fc.uniqueArray(name, { maxLength: 2 }), { maxKeys: 2, noNullPrototype: true }) }),
  fc.record({ contains: schema, minContains: fc.integer({ min: 0, max: 2 }) }),
]);
const schema07 = schemaOf(['#', '#/definitions/x', '#/definitions/y'], (schema) => [
  fc.record({ items: fc.array(schema, { minLength: 1, maxLength: 2 }), additionalItems: schema }),
  fc.record({ dependencies: fc.dictionary(name, fc.oneof(schema, fc.uniqueArray(name, { maxLength: 2 })), { maxKeys: 2, noNullPrototype: true }) }),
]);

const objectOf = (schema: fc.Arbitrary<unknown>) => schema.filter((some): some is Record<string, unknown> => typeof some === 'object' && some !== null);
const drafts = [
  {
    draft: '2020-12',
    create: () => new Ajv2020(PLAIN),
    whole: fc
      .tuple(objectOf(schema2020), schema2020, schema2020, objectOf(schema2020))
      .map(([root, x, y, z]) => ({ ...root, $defs: { x, y, z: { ...z, $anchor: 'anchored' } } })),
  },
  {
    draft: 'draft-07',
    create: () => new Ajv(PLAIN),
    whole: fc.tuple(objectOf(schema07), schema07, schema07).map(([root, x, y]) => ({ ...DRAFT_07, ...root, definitions: { x, y } })),
  },
];

/** Null: refused as a cycle of references. */
function compiled(schema: Record<string, unknown>): Validate | null {
  try {
    return compileSchema(schema);
  } catch (error) {
    if (error instanceof SwitchyardError && /lead back to itself|lead only to themselves/.test(error.message)) return null;
    throw error;
  }
}

/** False also where Ajv's generated code throws, as for some combinations of keywords. */
function verdictOf(plain: (value: unknown) => unknown, value: unknown): boolean {
  try {
    return plain(value) === true;
  } catch (error) {
    if (error instanceof TypeError) return false;
    throw error;
  }
}

it.each(drafts)('has the same verdict as plain Ajv, for schemas of $draft of any shape', ({ create, whole }) => {
  let compared = 0;
  fc.assert(
    fc.property(whole, fc.array(value, { minLength: 5, maxLength: 10 }), (schema, values) => {
      const validate = compiled(schema);
      if (validate === null) return;
      const ajv = create();
      addFormats.default(ajv);
      const plain = ajv.compile(schema);
      for (const some of values) {
        compared += 1;
        expect([schema, some, validate(some) === null]).toEqual([schema, some, verdictOf(plain, some)]);
      }
    }),
    { numRuns: 150 },
  );
  expect(compared).toBeGreaterThan(300);
});
