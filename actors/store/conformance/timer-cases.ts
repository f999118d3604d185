import { describe, expect, it } from 'vitest';
import { AT_MS, arm, commit, planOf } from './plans.ts';
import { acquire, nextPartition, type UnderTest, unique } from './store-under-test.ts';

export function timerCases(underTest: UnderTest): void {
  describe('timers', () => {
    it('are those of the last commit under their key, until a commit disarms them, and each partition has its own', async () => {
      const [claim, other] = [await acquire(underTest(), nextPartition()), await acquire(underTest(), nextPartition())];
      const { partition } = claim;
      const [moved, gone] = [unique('timer'), unique('timer')];
      const ofCase = async (of: number) => (await underTest().store.timers.of([of])).filter(({ key }) => [moved, gone].includes(key));
      const arming = planOf(claim, other);
      for (const key of [moved, gone]) arm(arming, claim, key, AT_MS, '{"n": 1}');
      await commit(underTest(), arming);
      expect((await ofCase(partition)).map(({ key }) => key).sort()).toEqual([moved, gone].sort());

      const moving = planOf(claim, other);
      arm(moving, claim, moved, AT_MS + 5, '{"n": 2}');
      moving.disarmTimer(partition, gone);
      moving.disarmTimer(other.partition, unique('timer'));
      await commit(underTest(), moving);
      expect(await ofCase(partition)).toEqual([{ partition, key: moved, dueAtMs: AT_MS + 5, command: '{"n": 2}' }]);
      expect(await ofCase(other.partition)).toEqual([]);

      const elsewhere = planOf(claim, other);
      elsewhere.disarmTimer(other.partition, moved);
      await commit(underTest(), elsewhere);
      expect(await ofCase(partition)).toHaveLength(1);
    });

    it('that are derived from open effects are not stored, and disarming one deletes no row', async () => {
      const claim = await acquire(underTest(), nextPartition());
      const { partition } = claim;
      const [derived, row] = [unique('timer'), unique('timer')];
      const keys = async () => (await underTest().store.timers.of([partition])).map(({ key }) => key).filter((key) => [derived, row].includes(key));
      const arming = planOf(claim);
      arming.timers.set(derived, { partition, key: derived, dueAtMs: AT_MS, command: '{}', isDerived: true });
      arm(arming, claim, row, AT_MS, '{}');
      await commit(underTest(), arming);
      expect(await keys()).toEqual([row]);

      const disarming = planOf(claim);
      disarming.timers.set(row, { partition, key: row, dueAtMs: null, isDerived: true });
      await commit(underTest(), disarming);
      expect(await keys()).toEqual([row]);
    });
  });
}
