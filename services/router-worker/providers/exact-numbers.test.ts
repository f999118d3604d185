import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ODD_NUMBERS } from './conformance/under-test.ts';
import { ExactJson, exactJson, type JsonPath, parseExactly, withExactNumbers, writeExactly } from './exact-numbers.ts';

const ARGUMENTS: readonly JsonPath[] = [['calls', null, 'args']];
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

  it('are written beside half of a character, which UTF-8 can not have', () => {
    const text = '{"a":1.0,"b":"\ud800","c":"\u{1f600}"}';

    expect(exactJson({ input: parseExactly(text) })).toBe('{"input":{"a":1.0,"b":"\\ud800","c":"\u{1f600}"}}');
  });

  it('leave what has none as it is', () => {
    expect(parseExactly('{"a":[1,-2.5,0.1,"x"],"b":900719925474099}')).toEqual({ a: [1, -2.5, 0.1, 'x'], b: 900_719_925_474_099 });
    expect(() => parseExactly('{"a":1.0')).toThrow(SyntaxError);
  });

  it.each([
    [
      '{"args":{"a":1.0},"calls":[{"args":{"a":1.0}},{"a":{"args":{"a":1.0}},"args":{"a":[1.0]}}]}',
      '{"args":{"a":1},"calls":[{"args":{"a":1.0}},{"a":{"args":{"a":1}},"args":{"a":[1.0]}}]}',
    ],
    [
      '{"calls":[1.0,{"args":{"calls":[{"args":{"a":1.0}}],"b":1.0},"b":1.0}],"b":1.0}',
      '{"calls":[1,{"args":{"calls":[{"args":{"a":1.0}}],"b":1.0},"b":1}],"b":1}',
    ],
    ['{"calls":[{"args":{"}\\"]":1.0,"":[]},"b":1.0}]}', '{"calls":[{"args":{"}\\"]":1.0,"":[]},"b":1}]}'],
    ['{"calls":[{"args":{"a":2.0},"args":{"a":1.0}}]}', '{"calls":[{"args":{"a":1.0}}]}'],
    ['{"calls":[{"args":{"a":1.0},"args":{"b":1}}]}', '{"calls":[{"args":{"b":1}}]}'],
    ['{"calls":[{"args":{"a":1.0}}],"calls":[{"args":"1.0"},{"args":{}}]}', '{"calls":[{"args":"1.0"},{"args":{}}]}'],
    ['{"calls":[{},{"args":{"a":1.0}}],"calls":[{"args":{}}]}', '{"calls":[{"args":{}}]}'],
    ['[{"calls":[{"args":{"a":1.0}}]}]', '[{"calls":[{"args":{"a":1}}]}]'],
    ['{"calls":{"args":{"a":1.0}}}', '{"calls":{"args":{"a":1}}}'],
    ['{ "calls" : [ { "args" : {"a":1.0} } ] }', '{"calls":[{"args":{"a":1.0}}]}'],
    // No object: there is nothing to write again.
    ['{"calls":[{"args":1.0},{"args":[1.0]},{"args":"1.0"},{"args":null}]}', '{"calls":[{"args":1},{"args":[1]},{"args":"1.0"},{"args":null}]}'],
  ])('are those at a place alone: %s', (json, written) => {
    expect(read(json)).toBe(written);
  });

  it.each(['{"a":1.0,"a":2.0}', '[{"b":{"a" : 1.0,"a":2.0}}]'])('are those of JSON.parse where a key comes twice: %s', (json) => {
    expect(parseExactly(json)).toEqual(JSON.parse(json));
  });

  it('are written as JSON.parse has them by what does not write them exactly, without a word of ours', () => {
    const value = { number: parseExactly('12345678901234567890'), list: parseExactly('{"a":[1.0,1e400]}') };
    expect(JSON.stringify(value)).toBe('{"number":12345678901234567000,"list":{"a":[1,null]}}');
    expect(exactJson(value)).toBe('{"number":12345678901234567890,"list":{"a":[1.0,1e400]}}');
    expect(JSON.stringify(value)).toBe('{"number":12345678901234567000,"list":{"a":[1,null]}}');
  });

  it('DESIGN 8: are not read from a text that has seen how they are written', () => {
    const exact = parseExactly('[1.0]');
    let seen = '';
    expect(
      writeExactly(() => {
        seen = JSON.stringify(exact);
        return '';
      }),
    ).toBe('');
    const forged = [JSON.parse(seen), `${JSON.parse(seen)}},{"`];
    expect(exactJson({ exact, forged })).toBe(`{"exact":[1.0],"forged":${JSON.stringify(forged)}}`);
  });

  it('are written in the order of the values, with others inside of them', () => {
    const [a, b] = [parseExactly('{"a":1.0}'), parseExactly('[-0]')];
    expect(writeExactly(() => `data: ${JSON.stringify({ b, nested: [exactJson(a), b, a] })}\n\n`)).toBe(
      'data: {"b":[-0],"nested":["{\\"a\\":1.0}",[-0],{"a":1.0}]}\n\n',
    );
  });

  it('are kept with one object for a text of any number of them', () => {
    const json = `{"list":[${'1.0,'.repeat(2_000_000)}1.0]}`;
    const value = parseExactly(json);
    expect(value instanceof ExactJson && value.text === json).toBe(true);
    expect(exactJson({ value }).length).toBe('{"value":}'.length + json.length);
  });

  it('are read from millions of brackets, digits and escapes', () => {
    const depth = 200_000;
    const deep = `{"calls":[{"args":{"a":${'['.repeat(depth)}1.0${']'.repeat(depth)}}}]}`;
    expect(read(deep) === deep).toBe(true);
    for (const json of ['1'.repeat(4_000_000), `[1.0,"${'\\"'.repeat(4_000_000)}"]`, `[${'{"a":1.0},'.repeat(100_000)}1]`]) {
      expect(exactJson(parseExactly(json)) === json).toBe(true);
    }
  });
});
