import { expect, it } from 'vitest';
import { partitionRanges } from './partition-ranges.ts';

it.each([
  [[], ''],
  [[7], '7'],
  [[3, 1, 2, 63, 40, 41], '1-3,40-41,63'],
  [Array.from({ length: 64 }, (_, partition) => partition), '0-63'],
])('prints partitions in ranges: %j', (partitions, expected) => {
  expect(partitionRanges(partitions)).toBe(expected);
});
