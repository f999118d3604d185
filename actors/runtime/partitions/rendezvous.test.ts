import { describe, expect, it } from 'vitest';
import { PARTITION_COUNT } from '#bus/partition.ts';
import { type LiveHost, shareOf } from './rendezvous.ts';

const times = { freshMs: 5_000, cutOffMs: 10_000 };
const answers = (sinceAgoMs: number, reachedAgoMs: number) => ({ sinceAgoMs, reachedAgoMs, logCreated: 'log-1' });
const host = (id: string, machineVersion = 1): LiveHost => ({ id, machineVersion, bus: answers(3_600_000, 500) });
const partitionsOf = (id: string, all: readonly LiveHost[]) => shareOf(id, all, times).own;
const hosts = (count: number) => Array.from({ length: count }, (_, index) => host(`host-01JD${String(index).padStart(4, '0')}`));

/** Owners by partition. */
function ownersAmong(all: LiveHost[]): Map<number, string> {
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
  it.each([1, 2, 3, 7, 20])('assigns each partition to exactly one of %i hosts, whichever host computes it', (count) => {
    const all = hosts(count);
    expect(ownersAmong(all).size).toBe(PARTITION_COUNT);
    expect(ownersAmong([...all].reverse())).toEqual(ownersAmong(all));
  });

  it('distributes them evenly, though the hosts have similar ids', () => {
    const all = hosts(4);
    const sizes = all.map(({ id }) => partitionsOf(id, all).size);
    expect(Math.min(...sizes)).toBeGreaterThanOrEqual(PARTITION_COUNT / 4 / 2);
    expect(Math.max(...sizes)).toBeLessThanOrEqual((PARTITION_COUNT / 4) * 2);
  });

  it('moves only the share of the host that joins or leaves', () => {
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

describe('DESIGN 4: a host that is cut off from the broker', () => {
  const [first, second, third] = hosts(3) as [LiveHost, LiveHost, LiveHost];
  const before = ownersAmong(hosts(3));
  const heldBy = (id: string) => [...before].flatMap(([partition, owner]) => (owner === id ? [partition] : []));
  const silent = (of: LiveHost, reachedAgoMs: number): LiveHost => ({ ...of, bus: answers(3_600_000, reachedAgoMs) });

  it('retains its share for ten seconds; then the hosts with the broker get it, and nothing else moves', () => {
    expect(ownersAmong([silent(first, 10_000), second, third])).toEqual(before);

    const after = ownersAmong([silent(first, 11_000), second, third]);
    expect(after.size).toBe(PARTITION_COUNT);
    for (const [partition, owner] of before) {
      if (owner === first.id) expect(after.get(partition)).not.toBe(first.id);
      else expect(after.get(partition)).toBe(owner);
    }
    expect(shareOf(first.id, [silent(first, 11_000), second, third], times).retain.size).toBe(0);
  });

  it('gets none of the share of another cut-off host, also before its own time is over', () => {
    const after = ownersAmong([silent(first, 11_000), silent(second, 6_000), third]);

    for (const partition of heldBy(first.id)) expect(after.get(partition)).toBe(third.id);
    for (const partition of heldBy(second.id)) expect(after.get(partition)).toBe(second.id);
  });

  it('retains everything while no other has the broker, and while those that had it lose it', () => {
    for (const reachedAgoMs of [8_000, 60_000]) {
      const all = [silent(first, reachedAgoMs), silent(second, reachedAgoMs + 900), silent(third, reachedAgoMs)];
      for (const { id } of all) expect([...shareOf(id, all, times).retain]).toEqual(expect.arrayContaining(heldBy(id)));
    }
    // The second host had taken over from the first and writes no heartbeats now: the first could not acquire again.
    const all = [silent(first, 60_000), silent(second, 7_000), silent(third, 7_000)];
    expect([...shareOf(second.id, all, times).retain]).toEqual(expect.arrayContaining([...heldBy(first.id), ...heldBy(second.id)]));
  });

  it('is not the one that reconnects a moment after another when the broker was away from all', () => {
    const all = [silent(first, 60_000), { ...second, bus: answers(9_000, 0) }, silent(third, 60_000)];
    expect(ownersAmong(all)).toEqual(before);
    expect(shareOf(second.id, all, times).retain.size).toBe(PARTITION_COUNT);
    expect(ownersAmong([silent(first, 61_100), { ...second, bus: answers(10_100, 0) }, silent(third, 0)])).not.toEqual(before);
  });

  it('counts as before where a host is of a release without this column: neither cut off, nor known to have the broker', () => {
    const older = { ...second, bus: null };
    expect(ownersAmong([silent(first, 60_000), older])).toEqual(ownersAmong([first, second]));
    expect(shareOf(first.id, [first, older], times).retain).toEqual(shareOf(first.id, [first, older], times).own);
    const after = ownersAmong([silent(first, 60_000), older, third]);
    for (const partition of heldBy(first.id)) expect(after.get(partition)).toBe(third.id);
  });
});
