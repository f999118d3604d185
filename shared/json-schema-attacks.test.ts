import { describe, expect, it, vi } from 'vitest';
import { compileSchema, nestingViolation, problemOfSchema } from './json-schema.ts';
import { SchemaError } from './schema/schema-error.ts';
import { StepBudget } from './schema/step-budget.ts';

/**
 * CPU bound of each case, on a busy machine. They take tens to hundreds of milliseconds; without the bounds of the code five seconds to an hour, or
 * for ever.
 */
const MAX_CPU_MS = 2_500;

type Schema = Record<string, unknown>;

function cpuMsOf(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/** The first violation's keyword, null when there is none; fails above the CPU bound. */
function keywordOf(schema: Schema, value: unknown): string | null {
  let keyword: string | null = null;
  const ms = cpuMsOf(() => {
    keyword = compileSchema(schema)(value)?.keyword ?? null;
  });
  expect(ms).toBeLessThan(MAX_CPU_MS);
  return keyword;
}

function refusalOf(schema: Schema): { path: readonly string[]; expected: string } | null {
  let problem: ReturnType<typeof problemOfSchema> = null;
  const ms = cpuMsOf(() => {
    problem = problemOfSchema(schema);
  });
  expect(ms).toBeLessThan(MAX_CPU_MS);
  return problem;
}

function listOf<T>(count: number, itemOf: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => itemOf(index));
}

function mapOf<T>(count: number, itemOf: (index: number) => T, nameOf: (index: number) => string = (index) => `p${index}`): Record<string, T> {
  return Object.fromEntries(listOf(count, (index) => [nameOf(index), itemOf(index)]));
}

/** Nested objects, the innermost empty. */
function nested(levels: number): Schema {
  return levels === 1 ? {} : { a: nested(levels - 1) };
}

/** As text: an object with the property `then` looks like a promise. */
function conditional(condition: string, consequence: string): Schema {
  return JSON.parse(`{"if":${condition},"then":${consequence}}`);
}

describe('schemas that double', () => {
  const doubling = (levels: number, through: (next: Schema) => Schema = (next) => ({ anyOf: [next, next] })): Schema => ({
    $defs: { ...mapOf(levels, (level) => through({ $ref: `#/$defs/p${level + 1}` })), [`p${levels}`]: { type: 'null' } },
    $ref: '#/$defs/p0',
  });

  it.each([24, 30, 100])('are refused with %i levels of definitions', (levels) => {
    expect(refusalOf(doubling(levels))).toEqual({ path: [], expected: expect.stringMatching(/100000 keywords with its references expanded/) });
  });

  it.each<[string, (next: Schema) => Schema]>([
    ['properties', (next) => ({ anyOf: [{ properties: { a: next } }, { properties: { a: next } }] })],
    ['an allOf and a oneOf', (next) => ({ allOf: [next], oneOf: [next] })],
    ['a condition', (next) => ({ ...conditional(JSON.stringify(next), JSON.stringify(next)) })],
    ['a not and dependent schemas', (next) => ({ not: next, dependentSchemas: { a: next } })],
  ])('are refused when they do through %s', (_what, through) => {
    expect(refusalOf(doubling(30, through))?.expected).toMatch(/expanded/);
  });

  it('pass with few levels, and with many that do not double', () => {
    expect(keywordOf(doubling(8), null)).toBeNull();
    expect(keywordOf(doubling(8), 1)).toBe('anyOf');
    expect(
      keywordOf(
        doubling(60, (next) => ({ allOf: [next] })),
        1,
      ),
    ).toBe('type');
  });
});

describe('references that lead back', () => {
  it.each<[string, Schema, string]>([
    ['allOf', { allOf: [{ $ref: '#' }] }, 'allOf.0.$ref'],
    ['anyOf', { anyOf: [{ type: 'string' }, { $ref: '#' }] }, 'anyOf.1.$ref'],
    ['oneOf', { oneOf: [{ $ref: '#' }] }, 'oneOf.0.$ref'],
    ['not', { not: { $ref: '#' } }, 'not.$ref'],
    ['if', conditional('{"$ref":"#"}', '{"required":["a"]}'), 'if.$ref'],
    ['then', conditional('{"required":["a"]}', '{"$ref":"#"}'), 'then.$ref'],
    ['dependentSchemas', { dependentSchemas: { a: { $ref: '#' } } }, 'dependentSchemas.a.$ref'],
    ['dependencies', { $schema: 'http://json-schema.org/draft-07/schema#', dependencies: { a: { $ref: '#' } } }, 'dependencies.a.$ref'],
    ['definitions', { $defs: { a: { allOf: [{ $ref: '#/$defs/b' }] }, b: { anyOf: [{ $ref: '#/$defs/a' }] } }, $ref: '#/$defs/a' }, '$defs.b.anyOf.0.$ref'],
    ['an $id', { $id: 'https://schemas.example/a', allOf: [{ $ref: 'https://schemas.example/a' }] }, 'allOf.0.$ref'],
    [
      'a relative $id',
      { $id: 'https://schemas.example/a', allOf: [{ $ref: 'b' }], $defs: { b: { $id: 'b', allOf: [{ $ref: 'a' }] } } },
      '$defs.b.allOf.0.$ref',
    ],
    ['an anchor', { $ref: '#x', $defs: { x: { $anchor: 'x', allOf: [{ $ref: '#x' }] } } }, '$defs.x.allOf.0.$ref'],
    ['a pointer into a keyword that nothing knows', { $ref: '#/x-shapes/a', 'x-shapes': { a: { not: { $ref: '#/x-shapes/a' } } } }, 'x-shapes.a.not.$ref'],
    ['a pointer into properties', { properties: { a: { allOf: [{ $ref: '#/properties/a' }] } } }, 'properties.a.allOf.0.$ref'],
    ['a dynamic anchor', { $dynamicAnchor: 'x', allOf: [{ $dynamicRef: '#x' }] }, 'allOf.0.$dynamicRef'],
    ['$recursiveRef', { allOf: [{ $recursiveRef: '#' }] }, 'allOf.0.$recursiveRef'],
  ])('to the same value are refused: %s', (_what, schema, path) => {
    expect(refusalOf(schema)).toEqual({ path: path.split('.'), expected: 'must not lead back to itself for the same value' });
  });

  it('to nothing but themselves are refused', () => {
    expect(refusalOf({ $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } })?.expected).toMatch(/lead only to themselves/);
  });

  it.each<Schema>([
    { properties: { a: { $ref: '#' } } },
    { items: { anyOf: [{ $ref: '#' }, { type: 'null' }] } },
    { additionalProperties: { $ref: '#' } },
    { contains: { $ref: '#' } },
    { propertyNames: { $ref: '#' } },
    { $dynamicAnchor: 'x', properties: { a: { $dynamicRef: '#x' } } },
    { allOf: [{ $ref: '#/$defs/a' }, { $ref: '#/$defs/a' }], $defs: { a: { allOf: [{ $ref: '#/$defs/b' }] }, b: { type: 'object' } } },
  ])('to another value pass: %j', (schema) => {
    expect(refusalOf(schema)).toBeNull();
  });

  it.each<[string, Schema]>([
    [
      'properties',
      {
        anyOf: [{ properties: { a: { $ref: '#' } }, patternProperties: { '^a': false } }, { properties: { a: { $ref: '#' } } }],
      },
    ],
    ['other properties', { allOf: [{ additionalProperties: { $ref: '#' } }, { patternProperties: { a: { $ref: '#' } } }] }],
    [
      'properties that are not evaluated',
      { oneOf: [{ properties: { a: { $ref: '#' } } }, { properties: { a: { $ref: '#' } } }], unevaluatedProperties: false },
    ],
  ])('once more for each branch and level of the value end: %s', (_what, schema) => {
    expect(keywordOf(schema, nested(8))).not.toBe('maxSteps');
    expect(keywordOf(schema, nested(60))).toBe('maxSteps');
  });

  it('are a violation where they overflow the stack', () => {
    const chain = { ...mapOf(90, (level) => ({ allOf: [{ $ref: `#/$defs/p${level + 1}` }] })), p90: { properties: { a: { $ref: '#/$defs/p0' } } } };
    const validate = compileSchema({ $ref: '#/$defs/p0', $defs: chain });
    const deeper = (levels: number): unknown => (levels === 0 ? validate(nested(60)) : deeper(levels - 1));

    expect(validate(nested(3))).toBeNull();
    // From increasing stack depths: each call gets a result, or overflows the stack itself.
    const answers = new Set<string | null>();
    for (let levels = 0; levels < 20_000; levels += 250) {
      try {
        const violation = deeper(levels);
        answers.add(violation === null ? null : JSON.stringify(violation));
      } catch (error) {
        expect(error).toBeInstanceOf(RangeError);
        break;
      }
    }
    expect([...answers]).toContainEqual(expect.stringMatching(/overflow the stack/));
  });
});

describe('texts', () => {
  it.each<[string, Schema, string, string]>([
    ['60,000 colons as a URL', { format: 'url' }, `http://${':'.repeat(60_000)}`, 'format'],
    ['a pattern that takes the cube of the length', { pattern: '^\\S+@\\S+\\.\\S+$' }, `${'@.'.repeat(2_047)} `, 'pattern'],
    ['the same with a million characters', { pattern: '^\\S+@\\S+\\.\\S+$' }, `${'@.'.repeat(500_000)} `, 'pattern'],
    ['a pattern that doubles with each of 25 groups', { pattern: `^${'(?:.|\\w)'.repeat(25)}b$` }, 'a'.repeat(27), 'pattern'],
    ['a pattern that doubles with each character', { pattern: '^(a+)+$' }, `${'a'.repeat(64_000)}!`, 'pattern'],
    ['a pattern for more places at once than the steps reach', { pattern: '[ab]*a[ab]{900}[cd]' }, `d${'ab'.repeat(100_000)}`, 'maxSteps'],
    ['a long name where it may stand in many errors', { additionalProperties: { anyOf: listOf(150, (index) => ({ required: [`x${index}`] })) } }, '', ''],
  ])('%s', (_what, schema, text, keyword) => {
    if (keyword === '') expect(keywordOf(schema, { ['n~/'.repeat(300_000)]: {} })).toBe('maxSteps');
    else expect(keywordOf(schema, text)).toBe(keyword);
  });

  it('may have a million characters where one look-up for each will do', () => {
    expect(keywordOf({ pattern: '^[a-z]+(-[a-z]+)*$' }, 'a'.repeat(1_000_000))).toBeNull();
    expect(keywordOf({ pattern: '^.{1,2000000}$' }, 'a'.repeat(900_000))).toBeNull();
    expect(keywordOf({ format: 'uri' }, `http://a.example/${'%41'.repeat(300_000)}`)).toBeNull();
  });
});

describe('compiling', () => {
  const choice = { anyOf: [{ type: 'string' }, { type: 'null' }] };

  it('accepts the schemas of existing tools', () => {
    expect(refusalOf({ type: 'object', properties: mapOf(150, () => choice), required: ['p1'] })).toBeNull();
    expect(refusalOf({ type: 'object', properties: mapOf(300, () => ({ type: 'string', description: 'What it is for. '.repeat(20) })) })).toBeNull();
    expect(refusalOf({ enum: listOf(2_000, (index) => `Area/City_${index}`) })).toBeNull();
  });

  it('is refused once: refusals are cached too', () => {
    const schema = { title: 'refused', properties: mapOf(350, () => choice) };
    const refusalsOf = () => {
      try {
        return compileSchema(schema);
      } catch (error) {
        return error;
      }
    };

    expect(refusalsOf()).toBeInstanceOf(Error);
    expect(refusalsOf()).toBe(refusalsOf());
  });

  it('is run when it is compiled, so that what V8 can not compile is refused then and not at the first value', () => {
    const steps = vi.spyOn(StepBudget.prototype, 'take');
    compileSchema({ title: 'run at once', pattern: '^a' });
    const takenAtOnce = steps.mock.calls.length;
    steps.mockRestore();

    expect(takenAtOnce).toBeGreaterThan(0);
  });

  it('is not refused permanently when only the remaining stack is too small', () => {
    // Flat to walk, deep to compile.
    const schema = { $ref: '#/$defs/p0', $defs: { ...mapOf(60, (level) => ({ allOf: [{ $ref: `#/$defs/p${level + 1}` }] })), p60: { type: 'string' } } };
    const deeper = (levels: number): unknown => (levels === 0 ? compileSchema(schema) : deeper(levels - 1));
    const causes: unknown[] = [];
    // From decreasing stack depths, until the refusal itself fits on the stack; further up compiling fits too.
    for (let levels = 20_000; levels > 0 && causes.length === 0; levels -= 200) {
      try {
        deeper(levels);
        break;
      } catch (error) {
        if (error instanceof SchemaError) causes.push(error.cause);
        else expect(error).toBeInstanceOf(RangeError);
      }
    }

    expect(causes).toEqual([expect.any(RangeError)]);
    expect(refusalOf(schema)).toBeNull();
  });

  it.each<[string, Schema, RegExp]>([
    ['2,000 properties with a choice of two', { properties: mapOf(2_000, () => choice) }, /more than (800 keywords|2000 objects)/],
    ['350 of them', { properties: mapOf(350, () => choice) }, /more than 800 keywords/],
    ['a choice of 900', { anyOf: listOf(900, (index) => ({ required: [`a${index}`] })) }, /more than 800 keywords/],
    [
      'overlapping references into one nest',
      { properties: { a: nest(20) }, anyOf: listOf(60, (depth) => ({ $ref: `#/properties/a${'/properties/a'.repeat(depth % 60)}` })) },
      /more than 800 keywords/,
    ],
    [
      'references into a chain of references',
      {
        $defs: { ...mapOf(300, (index) => ({ $ref: `#/$defs/p${index + 1}` })), p300: { type: 'object' } },
        anyOf: listOf(300, (index) => ({ $ref: `#/$defs/p${index}` })),
      },
      /more than 800 keywords|stack/,
    ],
    ['large patterns', { properties: mapOf(20, (index) => ({ pattern: `^(?:[a-z]${index}{0,9}){90}$` })) }, /more than 800 keywords/],
    ['names that another one asks for', { dependentRequired: { a: listOf(250, (index) => `b${index}`) } }, /more than 800 keywords/],
    [
      'the same in draft-07',
      { $schema: 'http://json-schema.org/draft-07/schema#', dependencies: { a: listOf(250, (index) => `b${index}`) } },
      /more than 800 keywords/,
    ],
    ['types listed by the thousand', { type: listOf(16_000, (index) => `t${index}`) }, /must/],
    [
      'names of 1,000 characters around much',
      mapOfPath(
        50,
        listOf(1_500, () => ({})),
      ),
      /such long names/,
    ],
    ['a long identifier', { $id: `https://schemas.example/${'a'.repeat(60_000)}` }, /longer than 1024/],
    ['definitions by the ten thousand', { $defs: mapOf(10_000, () => ({})) }, /more than 2000 objects/],
    ['a check that would answer by a promise', { $async: true, type: 'string' }, /at once/],
  ])('refuses %s', (_what, schema, complaint) => {
    expect(refusalOf(schema)?.expected).toMatch(complaint);
  });

  function nest(levels: number): Schema {
    return levels === 0 ? { type: 'string' } : { properties: { ...mapOf(10, () => ({ minLength: 1 })), a: nest(levels - 1) } };
  }

  function mapOfPath(levels: number, innermost: Schema[]): Schema {
    return levels === 0 ? { allOf: innermost } : { properties: { ['n'.repeat(1_000)]: mapOfPath(levels - 1, innermost) } };
  }
});

describe('checking', () => {
  it('compares 10,000 items with 3,000 objects', () => {
    const schema = { items: { enum: listOf(3_000, (index) => ({ a: index, b: [`x${index}`] })) } };

    expect(
      keywordOf(
        schema,
        listOf(10_000, () => ({ b: ['x2999'], a: 2_999 })),
      ),
    ).toBeNull();
    expect(keywordOf(schema, [{ a: 1, b: ['x2'] }])).toBe('enum');
  });

  it('compares thirty thousand items with each other', () => {
    const items = listOf(30_000, (index) => ({ index }));

    expect(keywordOf({ uniqueItems: true }, items)).toBeNull();
    expect(keywordOf({ uniqueItems: true }, [...items.slice(0, 15_000), { index: 7 }])).toBe('uniqueItems');
  });

  it('takes a list of some thousand records', () => {
    const record = {
      type: 'object',
      properties: { id: { type: 'integer', minimum: 0 }, name: { type: 'string', minLength: 1, maxLength: 80 }, email: { type: 'string', format: 'email' } },
      required: ['id', 'name'],
      additionalProperties: false,
    };

    expect(
      keywordOf(
        { items: record },
        listOf(10_000, (id) => ({ id, name: `name ${id}`, email: `user${id}@mail.example` })),
      ),
    ).toBeNull();
  });

  it.each<[string, Schema, unknown]>([
    ['branches and items', { items: { anyOf: listOf(200, (index) => ({ const: index })) } }, listOf(10_000, () => 199)],
    [
      'lists of values and items',
      { items: { anyOf: listOf(100, (index) => ({ enum: listOf(20, (position) => ({ a: [index, position, 'x'] })) })) } },
      listOf(10_000, () => ({ a: [99, 19, 'x'] })),
    ],
    [
      'conditions and items',
      { items: { allOf: listOf(60, (index) => conditional(`{"properties":{"a":{"const":${index}}},"required":["a"]}`, '{"required":["b"]}')) } },
      listOf(10_000, () => ({ a: 59, b: 1 })),
    ],
    [
      'patterns and names',
      {
        patternProperties: mapOf(
          40,
          () => ({ type: 'string' }),
          (index) => `x${index}_.*b`,
        ),
      },
      mapOf(10_000, () => ''),
    ],
    ['names and choices', { anyOf: listOf(200, () => ({ maxProperties: 1 })) }, mapOf(100_000, () => 0)],
    ['names that are not evaluated', { properties: mapOf(300, () => true), unevaluatedProperties: { type: 'integer' } }, mapOf(30_000, () => 0)],
    ['lists to be compared', { allOf: listOf(100, () => ({ uniqueItems: true })) }, listOf(100_000, (index) => index)],
    ['a long text and choices', { anyOf: listOf(200, () => ({ maxLength: 1 })) }, 'é'.repeat(1_000_000)],
    ['names in objects that are all different', { items: { properties: mapOf(390, () => true) } }, listOf(2_000, (index) => ({ [`p${index % 390}`]: 1 }))],
    ['a text that is counted again and again', { allOf: listOf(300, () => ({ maxLength: 1_000_000 })) }, 'a'.repeat(80_000)],
    ['a class with many ranges', { allOf: listOf(10, () => ({ pattern: '^\\p{L}+$' })) }, 'é'.repeat(100_000)],
    ['small lists to be compared', { uniqueItems: true }, listOf(100_000, (index) => [index])],
    ['small objects to be looked up', { items: { allOf: listOf(5, () => ({ const: { b: 1, a: 1 } })) } }, listOf(11_000, () => ({ b: 1, a: 1 }))],
    ['branches that fail', { items: { anyOf: listOf(200, (index) => ({ const: index })) } }, listOf(600, () => 199)],
    ['items to be contained', { contains: { anyOf: listOf(100, (index) => ({ const: `x${index}` })) }, minContains: 100_000 }, listOf(100_000, () => 'x99')],
  ])('DESIGN 11: no schema and no value takes more steps than there are: %s', (_what, schema, value) => {
    expect(keywordOf(schema, value)).toBe('maxSteps');
  });

  it('walks a value of the size of a body in little time before it is checked', () => {
    const bodies = [listOf(500_000, () => 1), listOf(300_000, () => ({})), listOf(300_000, () => [])];
    const ms = cpuMsOf(() => {
      for (let count = 0; count < 30; count += 1) for (const body of bodies) expect(nestingViolation(body)).toBeNull();
    });
    expect(ms).toBeLessThan(MAX_CPU_MS);
  });

  it('counts anew for each value', () => {
    const validate = compileSchema({ items: { enum: ['a', 'b'] } });
    const values = listOf(50_000, () => 'a');

    expect(listOf(20, () => validate(values))).toEqual(listOf(20, () => null));
  });
});
