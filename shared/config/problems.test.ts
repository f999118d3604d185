import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { escapeUnprintable, printedName, quotedName } from '../contracts/printed-name.ts';
import { check, configInvalid, sentenceOf } from './problems.ts';

describe('a name from outside', () => {
  it.each([
    ['plain', 'plain'],
    ['größe_2', 'größe_2'],
    ['$defs', '$defs'],
    ['x-y', 'x-y'],
    ['a b', '"a b"'],
    ['a.b', '"a.b"'],
    ['', '""'],
    ['say "hi"', '"say \\"hi\\""'],
    ['a\nerror: all is well', '"a\\nerror: all is well"'],
    ['\u001b[2J', '"\\u001b[2J"'],
    ['\u009b2J', '"\\u009b2J"'],
    ['\u202egnp', '"\\u202egnp"'],
    ['\ud800', '"\\ud800"'],
    ['x'.repeat(5_000), `"${'x'.repeat(100)}…"`],
  ])('%j is printed as %s', (name, printed) => {
    expect(printedName(name)).toBe(printed);
  });

  it('is quoted where a sentence needs it', () => {
    expect(quotedName('a')).toBe('"a"');
    expect(escapeUnprintable('a\u{e0041}b')).toBe('a\\udb40\\udc41b');
  });
});

describe('errors of a configuration', () => {
  it('DESIGN 10: names in errors are quoted when they are not plain words, so that a key can not add lines', () => {
    const { problems } = check(z.strictObject({}), { ['a\n\u001b[31mall is well']: 1, b: 2 });
    expect(configInvalid('x.yaml', problems.map(sentenceOf)).message.split('\n')).toEqual([
      'x.yaml has 2 errors:',
      '  "a\\n\\u001b[31mall is well": is not a known field',
      '  b: is not a known field',
    ]);
  });

  it('escape what does not print in names of files', () => {
    expect(configInvalid('the configuration', ['a\nb.yaml: is missing']).message).toBe('the configuration has 1 error:\n  a\\u000ab.yaml: is missing');
  });

  it('DESIGN 10: errors are truncated at fifty, with the count of the rest', () => {
    const lines = configInvalid(
      'x.yaml',
      Array.from({ length: 20_000 }, (_, index) => `k${index}: is not a known field`),
    ).message.split('\n');
    expect(lines).toHaveLength(52);
    expect(lines[0]).toBe('x.yaml has 20000 errors:');
    expect(lines[51]).toBe('  … and 19950 more');
  });
});
