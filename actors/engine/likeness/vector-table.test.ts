import { expect, it } from 'vitest';
import { nearestIn, vectorsIn } from './vector-table.ts';

const base64Of = (...values: number[]) => Buffer.from(new Float32Array(values).buffer).toString('base64');
const read = (count: number, ...values: number[]) => vectorsIn(base64Of(...values), count, 2) ?? expect.fail('no vectors');

it('rule 14: vectors are compared by their direction: each has the length 1', () => {
  expect([...read(2, 3, 4, 0, -2)]).toEqual([...new Float32Array([0.6, 0.8, 0, -1])]);
  expect([...read(1, 0, 0)]).toEqual([0, 0]);
});

it.each<[string, string]>([
  ['of other dimensions', base64Of(1, 2, 3)],
  ['of another number of texts', base64Of(1, 2, 3, 4)],
  ['with a number that is none', base64Of(1, Number.NaN)],
  ['with a number that is not finite', base64Of(1, Number.POSITIVE_INFINITY)],
  ['that are too long to be compared', base64Of(3e38, 3e38, 0)],
  ['that are empty', ''],
  ['that are no base64', '*'],
])('rule 14: vectors %s are none', (_, text) => {
  expect(vectorsIn(text, 1, 2)).toBeNull();
});

it('rule 14: the nearest come first, over all parts; what is at a right angle or beyond is near to nothing', () => {
  const table = { dimensions: 2, parts: [read(2, 0, 1, 1, 1), read(3, 5, 0, -1, 0.1, 0, 0)] };
  expect(nearestIn(table, read(1, 9, 1), 5)).toEqual([2, 1, 0]);
  expect(nearestIn(table, read(1, 9, 1), 2)).toEqual([2, 1]);
  expect(nearestIn(table, read(1, 9, 0), 5)).toEqual([2, 1]);
  expect(nearestIn({ dimensions: 2, parts: [read(3, 1, 1, 2, 2, 3, 3)] }, read(1, 1, 1), 2)).toHaveLength(2);
  expect(nearestIn(table, read(1, 0, 0), 5)).toEqual([]);
});

it('rule 14: of equal ones the earlier comes first', () => {
  expect(nearestIn({ dimensions: 2, parts: [read(2, 0, 7, 0, 2), read(1, 0, 1)] }, read(1, 0, 3), 3)).toEqual([0, 1, 2]);
});
