import { describe, expect, it } from 'vitest';
import { PARTITION_COUNT } from '#bus/partition.ts';
import { partitionsOf } from './rendezvous.ts';

const host = (id: string, machineVersion = 1) => ({ id, machineVersion });
const hosts = (count: number) => Array.from({ length: count }, (_, place) => host(`host-01JD${String(place).padStart(4, '0')}`));

/** By partition, who should own it. */
function ownersAmong(all: { id: string; machineVersion: number }[]): Map<number, string> {
  const owners = new Map<number, string>();
  for (const { id } of all) {
    for (const partition of partitionsOf(id, all)) {
      expect(owners.get(partition)).toBeUndefined();
      owners.set(partition, id);
    }
  }
  return owners;
}

describe('DESIGN 4: rendezvous', () => {
  it.each([1, 2, 3, 7, 20])('gives each partition to exactly one of %i hosts, whoever asks', (count) => {
    const all = hosts(count);
    expect(ownersAmong(all).size).toBe(PARTITION_COUNT);
    expect(ownersAmong([...all].reverse())).toEqual(ownersAmong(all));
  });

  it('shares them out fairly, though the hosts have ids that are nearly the same', () => {
    const all = hosts(4);
    const sizes = all.map(({ id }) => partitionsOf(id, all).size);
    expect(Math.min(...sizes)).toBeGreaterThanOrEqual(PARTITION_COUNT / 4 / 2);
    expect(Math.max(...sizes)).toBeLessThanOrEqual((PARTITION_COUNT / 4) * 2);
  });

  it('moves only the share of who joins or leaves', () => {
    const before = ownersAmong(hosts(3));
    const after = ownersAmong(hosts(4));
    const newcomer = hosts(4)[3]?.id;
    for (const [partition, owner] of after) if (owner !== newcomer) expect(before.get(partition)).toBe(owner);
  });

  it('counts only hosts of the highest version', () => {
    const all = [host('old-1', 1), host('old-2', 1), host('new-1', 2)];
    expect(partitionsOf('new-1', all).size).toBe(PARTITION_COUNT);
    expect(partitionsOf('old-1', all).size).toBe(0);
  });
});
