import { describe, expect, it } from 'vitest';
import { commit, planOf, sessionOf, write } from './plans.ts';
import { acquire, nextPartition, type UnderTest, unique } from './store-under-test.ts';

export function turnCases(underTest: UnderTest): void {
  describe('rows of turns', () => {
    it('are returned by turn and in order, whatever the order of their commits', async () => {
      const [sessionId, first, second, claim] = [unique('ses'), unique('trn'), unique('trn'), await acquire(underTest(), nextPartition())];
      const { turns } = underTest().store;
      const rowOf = (turnId: string, seq: number, body: object = { seq }) => ({ partition: claim.partition, sessionId, turnId, seq, offset: seq, body });
      for (const rows of [[rowOf(first, 1), rowOf(second, 0)], [rowOf(first, 0, { text: 'nul \u0000 and \ud800' })]]) {
        const plan = planOf(claim);
        write(plan, claim, { sessionId, turnSteps: rows });
        await commit(underTest(), plan);
      }

      expect(await turns.staged([first, unique('trn')])).toEqual(
        new Map([
          [
            first,
            [
              { seq: 0, body: { text: 'nul \u0000 and \ud800' } },
              { seq: 1, body: { seq: 1 } },
            ],
          ],
        ]),
      );
      expect((await turns.staged([first, second])).size).toBe(2);
      expect(await turns.staged([])).toEqual(new Map());
    });

    it('of an agent state: the newest counts', async () => {
      const [sessionId, other, claim] = [unique('ses'), unique('ses'), await acquire(underTest(), nextPartition())];
      const { turns } = underTest().store;
      const stateOf = (seq: number) => ({ appliedPolicyIds: [`policy-${seq}`], paths: { return: ['ask', null] } });
      for (const seq of [1, 2]) {
        const plan = planOf(claim);
        write(plan, claim, { sessionId, agentStates: [{ partition: claim.partition, sessionId, seq, offset: 4, state: stateOf(seq) }] });
        await commit(underTest(), plan);
      }

      expect(await turns.agentStates([sessionId, other])).toEqual(new Map([[sessionId, { offset: 4, state: stateOf(2) }]]));
    });

    it('of an agent state: what is added to the newest one stays until the event is deleted that it belongs to', async () => {
      const [sessionId, claim] = [unique('ses'), await acquire(underTest(), nextPartition())];
      const { turns } = underTest().store;
      const store = async (rows: readonly [seq: number, offset: number][], fromOffset: number | null = null) => {
        const plan = planOf(claim);
        const agentStates = rows.map(([seq, offset]) => ({ partition: claim.partition, sessionId, seq, offset, state: { at: seq } }));
        const cut = { partition: claim.partition, sessionId, fromOffset: fromOffset ?? 0, toOffset: 100, atMs: 0 };
        write(plan, claim, { sessionId, agentStates, deletedEvents: fromOffset === null ? [] : [cut] });
        await commit(underTest(), plan);
      };
      const newest = async () => (await turns.agentStates([sessionId])).get(sessionId);

      await store([
        [1, 4],
        [2, 9],
      ]);
      await store([
        [-5, 4],
        [-3, 2],
      ]);
      expect(await newest()).toEqual({ offset: 9, state: { at: 2 }, amendments: [{ at: -3 }, { at: -5 }] });
      await store([], 5);
      expect(await newest()).toEqual({ offset: 4, state: { at: 1 }, amendments: [{ at: -3 }, { at: -5 }] });
      await store([], 3);
      expect(await newest()).toBeUndefined();
    });

    it('read the newest tool lists of bundles, by server', async () => {
      const { turns } = underTest().store;
      expect(await turns.toolLists([unique('bundle')])).toEqual(new Map());
      expect(await turns.toolLists([])).toEqual(new Map());
    });

    it('are deleted with their session, and no other', async () => {
      const [ids, claim] = [[unique('ses'), unique('ses')], await acquire(underTest(), nextPartition())];
      const { turns } = underTest().store;
      const state = { appliedPolicyIds: [] };
      for (const sessionId of ids) {
        const plan = planOf(claim);
        const row = { partition: claim.partition, sessionId, offset: 0 };
        write(plan, claim, { sessionId, turnSteps: [{ ...row, turnId: `trn_${sessionId}`, seq: 0, body: {} }], agentStates: [{ ...row, seq: 1, state }] });
        await commit(underTest(), plan);
      }
      const [deleted = '', kept = ''] = ids;
      const plan = planOf(claim);
      plan.sessions.set(deleted, sessionOf(deleted, claim, { isDeleted: true }));
      write(plan, claim, { sessionId: deleted, isErased: true });
      await commit(underTest(), plan);

      expect([...(await turns.staged(ids.map((id) => `trn_${id}`))).keys()]).toEqual([`trn_${kept}`]);
      expect([...(await turns.agentStates(ids)).keys()]).toEqual([kept]);
    });
  });
}
