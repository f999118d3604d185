import { describe, expect, it } from 'vitest';
import { silentLog } from '#shared/telemetry/log.ts';
import { noMetrics } from '#shared/telemetry/metrics.ts';
import { CommitSender } from '../../runtime/apply/commit-sender.ts';
import type { CommitStore } from '../port/commit-store.ts';
import type { PartitionClaim } from '../port/partition-store.ts';
import { commit, planOf } from './plans.ts';
import { acquire, nextPartition, type UnderTest } from './store-under-test.ts';

const lost = () => Object.assign(new Error('Connection terminated unexpectedly'), { code: 'ECONNRESET' });

/** The commit sender of the runtime over the driver. */
export function outcomeCases(underTest: UnderTest): void {
  const senderOver = (over: Partial<CommitStore> = {}) => {
    const { commits, partitions } = underTest().store;
    return new CommitSender({ store: { partitions, commits: { ...commits, ...over } }, log: silentLog, metrics: noMetrics });
  };
  /** The first commit fails, before or after it is executed. */
  const losing = ({ isStored }: { isStored: boolean }): CommitStore['commit'] => {
    let calls = 0;
    return async (plan) => {
      calls += 1;
      if (calls > 1) return underTest().store.commits.commit(plan);
      if (isStored) await underTest().store.commits.commit(plan);
      throw lost();
    };
  };
  const place = async ({ partition }: PartitionClaim) => (await underTest().store.partitions.read([partition])).get(partition);

  describe('a commit of unknown outcome', () => {
    it.each([
      ['was stored is not stored again', true],
      ['was not stored is stored', false],
    ])('that %s', async (_, isStored) => {
      const claim = await acquire(underTest(), nextPartition());

      const outcome = await senderOver({ commit: losing({ isStored }) }).send(planOf(claim));

      expect(outcome).toEqual({ kind: 'committed', owned: new Set([claim.partition]) });
      expect(await place(claim)).toMatchObject({ commitNo: claim.commitNo + 1 });
    });

    it('whose partition another host has acquired meanwhile is given up', async () => {
      const claim = await acquire(underTest(), nextPartition());
      let next: PartitionClaim | null = null;
      const commitAfter: CommitStore['commit'] = async () => {
        next = await acquire(underTest(), claim.partition);
        throw lost();
      };

      expect(await senderOver({ commit: commitAfter }).send(planOf(claim))).toEqual({ kind: 'committed', owned: new Set() });
      expect(await place(claim)).toMatchObject({ owner: next?.['owner'], commitNo: claim.commitNo });
    });
  });

  describe('DESIGN 4: after a restore of the database another owner has reached the same epoch and commit number', () => {
    /** A restore resets the claim's epoch, and the next owner then reaches the same epoch and commit number. */
    const restoredUnder = async (claim: PartitionClaim): Promise<PartitionClaim> => {
      await underTest().others.restore(claim.partition, { owner: null, epoch: claim.epoch - 1, commitNo: claim.commitNo });
      const next = await acquire(underTest(), claim.partition);
      expect(next).toMatchObject({ epoch: claim.epoch, commitNo: claim.commitNo });
      return next;
    };

    it('a commit of the owner before the restore stores nothing, and one of the present owner is stored', async () => {
      const before = await acquire(underTest(), nextPartition());
      const next = await restoredUnder(before);

      expect(await senderOver().send(planOf(before))).toEqual({ kind: 'committed', owned: new Set() });
      expect(await place(next)).toMatchObject({ commitNo: next.commitNo });
      expect(await senderOver().send(planOf(next))).toEqual({ kind: 'committed', owned: new Set([next.partition]) });
    });

    it('a commit of unknown outcome does not count the commit of the present owner as its own', async () => {
      const before = await acquire(underTest(), nextPartition());
      const next = await restoredUnder(before);
      expect(await commit(underTest(), planOf(next))).toMatchObject({ owned: new Set([next.partition]) });

      expect(await senderOver({ commit: losing({ isStored: false }) }).send(planOf(before))).toEqual({ kind: 'committed', owned: new Set() });
    });

    it('a release by the owner before the restore leaves the partition with the present owner', async () => {
      const before = await acquire(underTest(), nextPartition());
      const next = await restoredUnder(before);
      await underTest().store.partitions.release([before]);

      expect(await place(next)).toMatchObject({ owner: next.owner });
    });
  });
}
