import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ODD_NUMBERS } from './conformance/under-test.ts';
import { exactJson, type JsonPath, parseExactly, withExactNumbers, withoutMarks } from './exact-numbers.ts';

const ARGUMENTS: readonly JsonPath[] = [['"calls"', null, '"args"']];
const read = (json: string) => exactJson(withExactNumbers(JSON.parse(json), json, ARGUMENTS));

describe('exact numbers', () => {
  it.each(['9007199254740993', '-12345678901234567890', '0.1234567890123456789', '-0', '-0.0', '1.0', '19.90', '1e5', '1E+2', '1e400', '5e-400', '0.0000001'])(
    'are written as they were read: %s',
    (number) => {
      for (const json of [number, `[${number},{"a":${number}}]`, ODD_NUMBERS]) expect(exactJson(parseExactly(json))).toBe(json);
    },
  );

  it('are written as they were read, with all else as JSON.stringify has it', () => {
    const number = fc.oneof(
      fc.bigInt().map(String),
      fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
      fc
        .tuple(fc.bigInt(), fc.stringMatching(/^\d{1,25}$/), fc.integer({ min: -500, max: 500 }))
        .map(([whole, fraction, exponent]) => `${whole}.${fraction}e${exponent}`),
      fc.constantFrom('-0', '1.0', '0.10'),
    );
    const { json } = fc.letrec<{ json: string }>((tie) => ({
      json: fc.oneof(
        { depthSize: 'small' },
        number,
        fc.string({ unit: 'binary' }).map((text) => JSON.stringify(text)),
        fc.constantFrom('null', 'true'),
        fc.array(tie('json')).map((items) => `[${items.join()}]`),
        fc
          .dictionary(fc.stringMatching(/^[^\d_].*$/), tie('json'))
          .map((members) => `{${Object.entries(members).map(([key, value]) => `${JSON.stringify(key)}:${value}`)}}`),
      ),
    }));
    fc.assert(
      fc.property(json, (text) => {
        expect(exactJson(parseExactly(text))).toBe(text);
      }),
      { numRuns: 50 },
    );
  });

  it('leave what has none as it is', () => {
    expect(parseExactly('{"a":[1,-2.5,0.1,"1.0","-0"],"b":9007199254740991}')).toEqual({ a: [1, -2.5, 0.1, '1.0', '-0'], b: 9_007_199_254_740_991 });
    expect(withoutMarks('{"a":"switchyard/number/"}')).toBe('{"a":"switchyard/number/"}');
    expect(() => parseExactly('{"a":1.0')).toThrow(SyntaxError);
  });

  it.each([
    ['{"args":1.0,"calls":[{"args":1.0},{"a":{"args":1.0},"args":[1.0]}]}', '{"args":1,"calls":[{"args":1.0},{"a":{"args":1},"args":[1.0]}]}'],
    ['{"calls":[1.0,{"args":{"calls":[{"args":1.0}],"b":1.0},"b":1.0}],"b":1.0}', '{"calls":[1,{"args":{"calls":[{"args":1.0}],"b":1.0},"b":1}],"b":1}'],
    ['{"calls":[{"args":{"}\\"]":1.0,"":[]},"b":1.0}]}', '{"calls":[{"args":{"}\\"]":1.0,"":[]},"b":1}]}'],
    ['{"calls":[{"args":2.0,"args":1.0}]}', '{"calls":[{"args":1.0}]}'],
    ['[{"calls":[{"args":1.0}]}]', '[{"calls":[{"args":1}]}]'],
    ['{"calls":{"args":1.0}}', '{"calls":{"args":1}}'],
    ['{ "calls" : [ { "args" : 1.0 } ] }', '{"calls":[{"args":1.0}]}'],
  ])('are those at a place alone: %s', (json, written) => {
    expect(read(json)).toBe(written);
  });

  it('are read from millions of brackets, digits and escapes', () => {
    const depth = 200_000;
    const deep = `${'['.repeat(depth)}1.0${']'.repeat(depth)}`;
    expect(() => withExactNumbers(null, `{"calls":[{"args":${deep}}]}`, ARGUMENTS)).not.toThrow();
    for (const json of ['1'.repeat(4_000_000), `[1.0,"${'\\"'.repeat(4_000_000)}"]`, `[${'1.0,'.repeat(100_000)}1]`]) {
      expect(exactJson(parseExactly(json)) === json).toBe(true);
    }
  });
});
