import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { JsonWriter } from './json-writer.ts';

/** Written behind reserved bytes, into a buffer that has to grow. */
function written(write: (writer: JsonWriter) => void, expectedBytes = 1): string {
  const writer = new JsonWriter(3, expectedBytes);
  write(writer);
  expect(writer.done()).toHaveLength(writer.lengthBytes);
  return writer.done().subarray(3).toString();
}

describe('a writer of JSON', () => {
  it('writes what JSON.stringify does', () => {
    const text = fc.string({ unit: fc.constantFrom('a', '"', '\\', '\n', '\u0001', 'é', '漢', '😀', '\ud800', '\udc00') });
    const value = fc.letrec((tie) => ({
      any: fc.oneof(text, fc.constant(null), fc.array(tie('any'), { maxLength: 3 }), fc.dictionary(text, tie('any'), { maxKeys: 3 })),
    })).any;
    fc.assert(
      fc.property(value, (one) => {
        expect(written((writer) => writer.value(one))).toBe(JSON.stringify(one));
      }),
    );
  });

  it.each(['a', '"', 'é', '漢', '😀', '\ud800', '\udc00', 'a😀', 'ab😀"'])('writes long texts of %j in chunks, with no pair of surrogates cut', (unit) => {
    for (const chars of [16_384, 16_385, 32_768, 100_001]) {
      const value = { text: unit.repeat(Math.ceil(chars / unit.length)) };
      expect(written((writer) => writer.value(value)) === JSON.stringify(value)).toBe(true);
      expect(written((writer) => writer.value(value), 1_000_000) === JSON.stringify(value)).toBe(true);
    }
  });

  it('cuts no pair behind a lone surrogate either, wherever a chunk ends', () => {
    for (const end of ['\ud800😀', '\ud800\ud800😀', '😀\udc00😀', '\ud800']) {
      for (const before of [16_380, 16_381, 16_382, 16_383, 16_384]) {
        const value = `${'x'.repeat(before)}${end}${'y'.repeat(20_000)}`;
        expect(written((writer) => writer.value(value)) === JSON.stringify(value)).toBe(true);
      }
    }
  });

  it('writes many short values beside a long one together', () => {
    const item = { type: 'text', text: 'a' };
    const value = [
      { content: [...Array.from({ length: 33_000 }, () => item), { ...item, text: 'x'.repeat(20_000) }], calls: Array.from({ length: 14_000 }, () => item) },
    ];
    const expected = JSON.stringify(value);
    const stringify = vi.spyOn(JSON, 'stringify');
    const json = written((writer) => writer.value(value));
    const calls = stringify.mock.calls.length;
    stringify.mockRestore();

    expect(json === expected).toBe(true);
    expect(calls).toBeLessThan(1_000);
  });

  it.each([1, 1_000, 1_000_000])('retains little more than what it has written, expecting %i bytes', (expectedBytes) => {
    const writer = new JsonWriter(0, expectedBytes);
    writer.value('x'.repeat(30_000));
    const { buffer, byteLength } = writer.done();
    expect(byteLength).toBe(30_002);
    expect(buffer.byteLength).toBeLessThanOrEqual(byteLength * 1.25);
  });

  it('writes many short texts in their order, beside long ones', () => {
    const texts = Array.from({ length: 30_000 }, (_, index) => (index % 1_000 === 0 ? '漢'.repeat(20_000) : `"${index}`));
    expect(written((writer) => writer.value(texts)) === JSON.stringify(texts)).toBe(true);
  });
});
