import { describe, expect, it } from 'vitest';
import { checkRoutine } from './check-routine.ts';
import { sentenceOf } from './problems.ts';

const DRAFT_07 = 'http://json-schema.org/draft-07/schema#';
const TYPES = '"array", "boolean", "integer", "null", "number", "object", "string"';

function sentencesOf(fields: object): string[] {
  return checkRoutine({ id: 'triage', version: 1, kind: 'autonomous', instructions: 'Sum it up', ...fields }).problems.map(sentenceOf);
}

describe('checkRoutine', () => {
  it.each<[string, Record<string, unknown>, string[]]>([
    [
      'a type that there is not',
      { properties: { a: { type: 'text' } } },
      [`properties.a.type: must be one of ${TYPES}, or a list of at least one type, none twice`],
    ],
    ['one of several types', { type: ['object', 'text'] }, [`type[1]: must be one of ${TYPES}`]],
    ['no type at all', { items: { type: [] } }, ['items.type: must be a list of at least one type, none twice']],
    ['a name for a list of names', { required: 'a' }, ['required: must be a list of strings, none twice']],
    ['a name twice', { required: ['a', 'a'] }, ['required: must be a list of strings, none twice']],
    ['a number for a name', { dependentRequired: { a: ['b', 1] } }, ['dependentRequired.a[1]: must be a string']],
    ['a list for a map', { properties: [] }, ['properties: must be an object of schemas']],
    ['a map for a list', { allOf: {} }, ['allOf: must be a list of at least one schema']],
    ['a text for a schema', { anyOf: [true, 'x'] }, ['anyOf[1]: must be a JSON Schema: an object, true or false']],
    ['no value', { enum: [] }, ['enum: must be a list of at least one value']],
    ['a count below 0', { minLength: -1 }, ['minLength: must be a whole number, at least 0']],
    ['a count that is none', { minLength: 0.5 }, ['minLength: must be a whole number, at least 0']],
    ['a factor of 0', { multipleOf: 0 }, ['multipleOf: must be a number greater than 0']],
    ['a description that is no text', { description: ['x'] }, ['description: must be a string']],
    ['a pattern that is no expression', { pattern: '(' }, ['pattern: must be a regular expression']],
    ['such a pattern for names', { patternProperties: { '(/~': true } }, ['patternProperties."(/~": must be a regular expression']],
    ['a reference to elsewhere', { $ref: 'https://schemas.example/a' }, ['$ref: must be a reference into the same schema, like #/$defs/name']],
    [
      'references that lead nowhere',
      { not: { $ref: '#/$defs/a%20b' }, $defs: { a: { $dynamicRef: '#/c' }, 'a b': 5 } },
      [
        '$defs.a.$dynamicRef: leads nowhere: there is no #/c',
        '$defs."a b": must be a JSON Schema: an object, true or false',
        'not.$ref: leads nowhere: there is no #/$defs/a%20b',
      ],
    ],
    ['a tuple of draft 2020-12', { items: [{}] }, ['items: must be a JSON Schema: an object, true or false']],
    ['a place in a tuple of draft-07', { $schema: DRAFT_07, items: [true, { minimum: 'x' }] }, ['items[1].minimum: must be a number']],
    [
      'no kind of a choice',
      { $schema: DRAFT_07, dependencies: { a: 5 } },
      ['dependencies.a: must be a JSON Schema: an object, true or false, or a list of strings, none twice'],
    ],
    ['a reference of draft-07', { $schema: DRAFT_07, items: { $ref: '#/definitions/a' } }, ['items.$ref: leads nowhere: there is no #/definitions/a']],
  ])('reports what a schema must have instead of %s', (_what, schema, sentences) => {
    expect(sentencesOf({ output_schema: schema }).sort()).toEqual(sentences.map((sentence) => `output_schema.${sentence}`).sort());
  });

  it.each<[string, Record<string, unknown>]>([
    ['references to what is there', { $defs: { 'a b': { $ref: '#' }, 'c/d': true }, allOf: [{ $ref: '#/$defs/a%20b' }, { $ref: '#/$defs/c~1d' }] }],
    ['tuples, as each draft writes them', { prefixItems: [{ type: 'string' }], items: false }],
    ['tuples of draft-07', { $schema: DRAFT_07, properties: { a: { items: [{ type: 'string' }], additionalItems: false } } }],
    [
      'what stands for values, not for schemas',
      { const: { $ref: 5 }, default: { type: 5 }, enum: [{ pattern: '(' }], examples: [{ $ref: 'x' }], 'x-order': { $ref: 5 } },
    ],
  ])('takes %s', (_what, schema) => {
    expect(sentencesOf({ input_schema: schema })).toEqual([]);
  });

  it('lists the errors of both schemas beside those of other fields', () => {
    const wrong = { minLength: 'x' };

    expect(sentencesOf({ instructions: 5, input_schema: { ...wrong, type: 'array' }, output_schema: wrong })).toEqual([
      'instructions: must be a text, or {id, version} of a prompt',
      'input_schema.type: must be or include "object"',
      'input_schema.minLength: must be a whole number, at least 0',
      'output_schema.minLength: must be a whole number, at least 0',
    ]);
  });

  it('lists each of thousands of errors once', () => {
    const properties = Object.fromEntries(Array.from({ length: 600 }, (_, index) => [`p${index}`, { required: Array.from({ length: 30 }, () => 1) }]));

    // One error per entry, and one per list for its repeats.
    expect(sentencesOf({ input_schema: { properties } })).toHaveLength(600 * 31);
  });
});
