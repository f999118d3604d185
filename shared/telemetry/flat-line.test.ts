import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type FlatFields, flatLine, isFlat, lineBase } from './flat-line.ts';
import { createLog } from './log.ts';

const TIME = /"time":"[^"]*"/;

/** As pino renders it, by the log of a test, whose lines never wait. */
function pinoLine(fields: Record<string, unknown>, message: string): string {
  const lines: string[] = [];
  createLog({ level: 'info', service: 'test', format: 'json', output: { write: (line) => void lines.push(line) } }).info(fields, message);
  return lines.join('');
}

const key = fc.oneof(fc.stringMatching(/^[a-z_]{1,12}$/), fc.constantFrom('api_key', 'max_tokens', 'token', 'url', 'err'));
const text = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('https://u:hush@host/?api_key=hush', '"\\\n\u2028', 'x'.repeat(9_000)));
const plain = fc.oneof(text, fc.double(), fc.integer(), fc.boolean(), fc.constant(null), fc.constant(undefined));

it('is what pino writes of the same fields, with secrets masked', () => {
  fc.assert(
    fc.property(fc.dictionary(key, plain, { maxKeys: 12 }), fc.string(), (fields: FlatFields, message) => {
      const line = flatLine({ level: 'info', atMs: 0, base: lineBase('test'), fields, message });
      expect(line).toContain('"time":"1970-01-01T00:00:00.000Z"');
      expect(line.replace(TIME, '')).toBe(pinoLine(fields, message).replace(TIME, ''));
    }),
  );
});

it.each([
  ['plain values', { text: 'a', count: 1, isDone: false, nothing: null, absent: undefined }, true],
  ['an object, which may change', { nested: {} }, false],
  ['an error', { err: new Error('failed') }, false],
  ['what JSON has no form for', { big: 1n }, false],
  ['a function', { run: () => {} }, false],
  ['more fields than a line of ours has', Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`field_${n}`, n])), false],
])('of fields with %s', (_, fields, expected) => {
  expect(isFlat(fields)).toBe(expected);
});
