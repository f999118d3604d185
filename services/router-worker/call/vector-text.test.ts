import fc from 'fast-check';
import { expect, it } from 'vitest';
import { vectorIn } from '../providers/openai-compatible/vector-in.ts';
import { vectorChars, vectorText } from './vector-text.ts';

const vectors = fc.array(fc.float({ noNaN: true, noDefaultInfinity: true }), { minLength: 1, maxLength: 40 }).map((values) => Float32Array.from(values));

it('writes numbers that are the same floats when they are read', () => {
  fc.assert(
    fc.property(vectors, (vector) => {
      const read: number[] = JSON.parse(vectorText(vector, 'float'));
      // JSON has no negative zero.
      expect(read.map((value) => Math.fround(value) + 0)).toEqual(Array.from(vector, (value) => value + 0));
    }),
  );
});

it('takes no more characters than stated for the numbers of a vector of length 1', () => {
  const vector = Float32Array.from({ length: 1_536 }, (_, at) => Math.sin(at + 1) / Math.sqrt(768));
  expect(vectorText(vector, 'float').length).toBeLessThanOrEqual(vectorChars(vector.length, 'float'));
});

it('writes base64 of little-endian floats, of the stated length', () => {
  expect(vectorText(Float32Array.of(1, -2), 'base64')).toBe('"AACAPwAAAMA="');
  fc.assert(
    fc.property(vectors, (vector) => {
      const text = vectorText(vector, 'base64');
      expect(vectorIn(JSON.parse(text))).toEqual(vector);
      expect(text).toHaveLength(vectorChars(vector.length, 'base64'));
    }),
  );
});

it.each(['', 'AAAA', 'AAAAAAA=', '[1,2]', 'AACA PwAAAMA='])('reads no vector from %j', (text) => {
  expect(vectorIn(text)).toBeNull();
});
