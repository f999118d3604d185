import { describe, expect, it } from 'vitest';
import { PARTITION_COUNT, partitionOf } from './partition.ts';

describe('partitionOf', () => {
  // Published vectors of 32 bit FNV-1a; the partition is their lowest six bits.
  it.each([
    ['', 0x811c9dc5],
    ['a', 0xe40c292c],
    ['b', 0xe70c2de5],
    ['foobar', 0xbf9cf968],
    ['hello', 0x4f9f2cab],
  ])('DESIGN 4: the partition of %j is its FNV-1a hash modulo 64', (text, hash) => {
    expect(partitionOf(text)).toBe(hash % 64);
  });

  it('hashes UTF-8 bytes, not UTF-16 units', () => {
    let hash = 0x811c9dc5n;
    for (const byte of [0xc3, 0xa9]) hash = ((hash ^ BigInt(byte)) * 0x01000193n) % 2n ** 32n;

    expect(partitionOf('\u00e9')).toBe(Number(hash % 64n));
  });

  it('spreads ids over all partitions, evenly enough', () => {
    const counts = new Array<number>(PARTITION_COUNT).fill(0);
    for (let index = 0; index < 64_000; index += 1) {
      const partition = partitionOf(`sess_${index}`);
      counts[partition] = (counts[partition] ?? 0) + 1;
    }

    expect(counts).toHaveLength(PARTITION_COUNT);
    expect(Math.min(...counts)).toBeGreaterThan(700);
    expect(Math.max(...counts)).toBeLessThan(1_300);
  });
});
