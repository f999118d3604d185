import fc from 'fast-check';
import { expect, it } from 'vitest';
import { jsonExcess } from './json-bounds.ts';

/** Shorter texts are not scanned. */
const PADDING = ' '.repeat(256 * 1_024);
const ANY = { depth: Number.POSITIVE_INFINITY, values: Number.POSITIVE_INFINITY };

const large = (json: string | Buffer) => Buffer.concat([Buffer.from(PADDING), Buffer.from(json)]);
const excess = (json: string | Buffer, bounds: Partial<typeof ANY>) => jsonExcess(large(json), { ...ANY, ...bounds })?.bound ?? null;

/** Of what was parsed. */
function measured(value: unknown): { depth: number; values: number } {
  if (typeof value !== 'object' || value === null) return { depth: 0, values: 1 };
  const children = Object.values(value).map(measured);
  return { depth: 1 + Math.max(0, ...children.map(({ depth }) => depth)), values: 1 + children.reduce((sum, { values }) => sum + values, 0) };
}

it('counts the levels and values of any JSON as they are parsed, written densely or not', () => {
  // Texts of signs that end strings and values early in a wrong scan, and of any characters.
  const text = fc.oneof(fc.string({ unit: fc.constantFrom('"', '\\', '[', '}', ',', 'é', '€', '\u2028', 'a', '\n') }), fc.string({ unit: 'binary' }));
  const scalar = fc.oneof(text, fc.integer(), fc.double({ noNaN: true }), fc.boolean(), fc.constant(null));
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      scalar,
      fc.array(tie('tree'), { maxLength: 5 }),
      fc.dictionary(text, tie('tree'), { maxKeys: 5 }),
    ),
  }));
  fc.assert(
    fc.property(tree, fc.constantFrom(undefined, 1, '\t\r\n'), (value, space) => {
      const json = JSON.stringify(value, null, space);
      const { depth, values } = measured(JSON.parse(json));

      expect(excess(json, { depth, values })).toBeNull();
      if (values > 1) expect(excess(json, { values: values - 1 })).toBe('values');
      if (depth > 0) expect(excess(json, { depth: depth - 1 })).toBe('depth');
    }),
    { numRuns: 100 },
  );
});

it.each([
  ['an escaped quote', '["\\"[[[,,,",1]'],
  ['an escaped backslash before the end', '["\\\\",[1]]'],
  ['a quote behind many backslashes', `["${'\\\\'.repeat(50)}\\"[[[,,,",1]`],
  ['an escape of a sign', '["\\u0022[[[\\u005c",1]'],
  ['a long text before an escaped quote', `["${'a'.repeat(100)}\\"[[[,,,${'b'.repeat(100)}",1]`],
  ['an escape at each place of what is looked at one by one', `[${Array.from({ length: 20 }, (_, at) => `"${'a'.repeat(at)}\\"[[["`).join()}]`],
  ['characters of two, three and four bytes', '["é€😀[[[,,,",1]'],
  ['bytes that are not UTF-8', Buffer.from('["\u00ff\u00dc[[[",1]', 'latin1')],
])('sees the end of a text with %s', (_, json) => {
  const { depth, values } = measured(JSON.parse(json.toString()));

  expect(excess(json, { depth, values })).toBeNull();
  expect(excess(json, { values: values - 1 })).toBe('values');
});

it.each([
  ['brackets that never close', '['.repeat(1_000_000), 'depth'],
  ['the same behind a text of two bytes a character', `["€",${'['.repeat(1_000_000)}`, 'depth'],
  ['empty objects', `[${'{},'.repeat(300_000)}`, 'values'],
  ['names', `{${Array.from({ length: 120_000 }, (_, at) => `"${at}":0`).join()}}`, 'values'],
  ['one name, repeated', `{${'"a":0,'.repeat(120_000)}"a":0}`, 'values'],
  ['a text that never ends', `["${'\\"['.repeat(300_000)}`, null],
  ['a backslash at the end', `["${'a'.repeat(1_000_000)}\\`, null],
])('of text that is no JSON, or a lot of it, finds what stands before its end: %s', (_, json, bound) => {
  expect(excess(json, { depth: 200, values: 100_000 })).toBe(bound);
});

it('names where the first level too many begins', () => {
  expect(jsonExcess(large('{"é":[[0]]}'), { ...ANY, depth: 2 })).toEqual({ bound: 'depth', at: PADDING.length + '{"__":['.length });
});

it('leaves a small text to its parser', () => {
  expect(jsonExcess(Buffer.from('['.repeat(100_000)), { depth: 1, values: 1 })).toBeNull();
});
