import { describe, expect, it } from 'vitest';
import { commit, planOf } from './plans.ts';
import { acquire, LONG_MS, nextPartition, PARTITIONS, type UnderTest, unique } from './store-under-test.ts';

export function partitionCases(underTest: UnderTest): void {
  const take = (hostId: string, partition: number, options: { machineVersion?: number; logCreated?: string; expiresAfterMs?: number } = {}) =>
    underTest().store.partitions.acquire({ hostId, machineVersion: 1, logCreated: 'log', expiresAfterMs: LONG_MS, ...options, partitions: [partition] });
  const beat = (hostId: string) => underTest().store.hosts.beat({ hostId, machineVersion: 1, bus: null, isStopping: false, expiresAfterMs: LONG_MS });
  const stored = async (partition: number) => (await underTest().store.partitions.read([partition])).get(partition);

  describe('partitions', () => {
    it('are created once, and their number does not change', async () => {
      const { partitions } = underTest().store;
      const claim = await acquire(underTest(), nextPartition());

      expect(await partitions.initialise(PARTITIONS)).toBe(PARTITIONS);
      expect(await partitions.initialise(PARTITIONS + 1)).toBe(PARTITIONS);
      expect(await stored(claim.partition)).toMatchObject({ owner: claim.owner });
      expect([...(await partitions.read([PARTITIONS])).keys()]).toEqual([]);
    });

    it('are acquired from a dead owner with the next epoch and its last cursor, and not from a live one', async () => {
      const [first, second] = [unique('host'), unique('host')];
      const before = await acquire(underTest(), nextPartition(), first);
      await commit(underTest(), planOf(before));
      await beat(first);

      expect(await take(second, before.partition)).toEqual([]);
      expect(await take(second, before.partition, { expiresAfterMs: -LONG_MS })).toEqual([{ ...before, owner: second, epoch: before.epoch + 1 }]);
      expect(await stored(before.partition)).toEqual({ owner: second, epoch: before.epoch + 1, commitNo: before.commitNo });
    });

    it('are acquired by their owner again, with a new epoch', async () => {
      const host = unique('host');
      const before = await acquire(underTest(), nextPartition(), host);
      await beat(host);

      expect(await take(host, before.partition)).toMatchObject([{ epoch: before.epoch + 1, owner: host }]);
    });

    it('are not acquired by a host of an older machine version than the last owner', async () => {
      const partition = nextPartition();
      const [newest] = await take(unique('host'), partition, { machineVersion: 2, expiresAfterMs: -LONG_MS });
      await underTest().store.partitions.release(newest === undefined ? [] : [newest]);

      expect(await take(unique('host'), partition, { machineVersion: 1 })).toEqual([]);
      expect(await take(unique('host'), partition, { machineVersion: 2 })).toHaveLength(1);
      await underTest().others.restore(partition, { owner: null, epoch: 0, commitNo: 0 });
    });

    it('begin at the start of a replaced command log', async () => {
      const before = await acquire(underTest(), nextPartition());
      await commit(underTest(), planOf(before));

      const [claim] = await take(before.owner, before.partition, { logCreated: 'another' });
      expect(claim).toMatchObject({ cursor: 0, cursorFingerprint: null, commitNo: before.commitNo });
    });

    it('are released under their claim only: not under an earlier epoch, and not by another owner', async () => {
      const { partitions } = underTest().store;
      const claim = await acquire(underTest(), nextPartition());

      await partitions.release([
        { ...claim, epoch: claim.epoch - 1 },
        { ...claim, owner: 'another' },
      ]);
      expect(await stored(claim.partition)).toMatchObject({ owner: claim.owner });
      await partitions.release([claim]);
      expect(await stored(claim.partition)).toEqual({ owner: null, epoch: claim.epoch, commitNo: claim.commitNo });
    });

    it('are released beyond those to retain, and all are reported as they were', async () => {
      const host = unique('host');
      const [kept, surplus, other] = [
        await acquire(underTest(), nextPartition(), host),
        await acquire(underTest(), nextPartition(), host),
        await acquire(underTest(), nextPartition()),
      ];

      const { released, before } = await underTest().store.partitions.releaseOutside(host, new Set([kept.partition]));

      expect(released).toEqual([surplus.partition]);
      expect(before.size).toBe(PARTITIONS);
      for (const { partition, owner, epoch, commitNo } of [kept, surplus, other]) expect(before.get(partition)).toEqual({ owner, epoch, commitNo });
      expect([await stored(kept.partition), await stored(surplus.partition)]).toMatchObject([{ owner: host }, { owner: null }]);
    });

    it('have their lowest cursor reported', async () => {
      const { store } = underTest();
      const all = Array.from({ length: PARTITIONS }, (_, partition) => partition);
      const claims = await store.partitions.acquire({
        ...{ hostId: unique('host'), machineVersion: 1, logCreated: unique('log'), partitions: all, expiresAfterMs: -LONG_MS },
      });
      expect(await store.partitions.lowestCursor()).toEqual({ sequence: 0, fingerprint: null });

      const plan = planOf();
      for (const claim of claims) plan.advance(claim, 100 + claim.partition, `@${claim.partition}`);
      await commit(underTest(), plan);
      expect(await store.partitions.lowestCursor()).toEqual({ sequence: 100, fingerprint: '@0' });
    });
  });
}
