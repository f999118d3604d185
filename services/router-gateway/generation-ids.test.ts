import { describe, expect, it } from 'vitest';
import { readGenerationId } from '#shared/generation-id.ts';
import { GenerationIds } from './generation-ids.ts';

const parts = { houseSecret: 'HOUSE_SECRET of a test', origin: 'g1a2b3c' };
const at = 1_700_000_000_000;

describe('the ids of calls', () => {
  it('are unique, and belong to the key that they are minted for, however fast they are requested', () => {
    const ids = new GenerationIds(parts);
    const made = Array.from({ length: 2_000 }, (_, index) => ({ keyId: `key ${index % 2}`, id: ids.next(`key ${index % 2}`, at + Math.floor(index / 10)) }));

    expect(new Set(made.map(({ id }) => id)).size).toBe(2_000);
    for (const { id, keyId } of made) {
      expect(readGenerationId(id, { ...parts, keyId })).toMatchObject({ origin: 'g1a2b3c' });
      expect(readGenerationId(id, { ...parts, keyId: 'another' })).toBeNull();
    }
  });

  it('contain the time of minting, to a tenth of a second', () => {
    const ids = new GenerationIds(parts);
    // Fast, then after a pause, then with a clock that was set back.
    const times = [...Array.from({ length: 500 }, (_, index) => at + index), at + 10_000, at + 10_100, at - 5_000];

    for (const nowMs of times) {
      const atMs = readGenerationId(ids.next('a key', nowMs), { ...parts, keyId: 'a key' })?.atMs ?? 0;
      expect(nowMs - atMs).toBeGreaterThanOrEqual(0);
      expect(nowMs - atMs).toBeLessThan(100);
    }
  });

  it('are minted in batches for a busy key, and singly for another', () => {
    const hurried = new GenerationIds(parts);
    const slow = new GenerationIds(parts);
    const timesIn = (made: string[]) => new Set(made.map((id) => readGenerationId(id, { ...parts, keyId: 'a key' })?.atMs)).size;

    // With batches of 32 a tenth of a second has four timestamps.
    expect(timesIn(Array.from({ length: 1_000 }, (_, index) => hurried.next('a key', at + index)))).toBeLessThan(50);
    expect(timesIn(Array.from({ length: 20 }, (_, index) => slow.next('a key', at + index * 200)))).toBe(20);
  });

  it('are minted ahead for a thousand keys at most', () => {
    const ids = new GenerationIds(parts);
    ids.next('first', at);
    ids.next('first', at);
    for (let index = 0; index < 1_000; index += 1) ids.next(`key ${index}`, at);

    // Its batch was dropped: the next id has the current time.
    expect(readGenerationId(ids.next('first', at + 1), { ...parts, keyId: 'first' })?.atMs).toBe(at + 1);
  });
});
