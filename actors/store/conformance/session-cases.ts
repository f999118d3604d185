import { describe, expect, it } from 'vitest';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import { encodeSnapshot } from '../../kinds/snapshots.ts';
import { AT_MS, append, commit, deliveryOf, messageAt, planOf, process, sessionOf, stage, statusAt, write } from './plans.ts';
import { acquire, nextPartition, type UnderTest, unique } from './store-under-test.ts';

export function sessionCases(underTest: UnderTest): void {
  describe('sessions', () => {
    it('are loaded as the last commit stored them, and those that do not exist are omitted', async () => {
      const [id, claim] = [unique('ses'), await acquire(underTest(), nextPartition())];
      const [first, second] = [sessionOf(id, claim), sessionOf(id, claim, { head: 3 })];
      for (const state of [first, second]) {
        const plan = planOf(claim);
        plan.sessions.set(id, state);
        await commit(underTest(), plan);
      }

      const { partition, head, record, isDeleted } = second;
      const stored = { id, partition, head, record, snapshot: JSON.parse(encodeSnapshot(second)), isDeleted };
      expect(await underTest().store.sessions.load([id, unique('ses')])).toEqual([stored]);
      expect(await underTest().store.sessions.load([])).toEqual([]);
    });

    it('return their newest messages up to an offset, in order and without status events', async () => {
      const [id, claim] = [unique('ses'), await acquire(underTest(), nextPartition())];
      const plan = planOf(claim);
      const events = [messageAt(0), statusAt(1), messageAt(2), messageAt(3), messageAt(4)];
      for (const event of events) append(plan, claim, id, event);
      await commit(underTest(), plan);
      const offsets = async (upTo: number, limit: number) => (await underTest().store.sessions.messages(id, upTo, limit)).map(({ offset }) => offset);

      expect(await underTest().store.sessions.messages(id, 0, 10)).toEqual([messageAt(0)]);
      expect(await offsets(3, 10)).toEqual([0, 2, 3]);
      expect(await offsets(3, 2)).toEqual([2, 3]);
      expect(await underTest().store.sessions.messages(unique('ses'), 10, 10)).toEqual([]);
    });

    it('have changed events, and none that is deleted, up to the end of the range', async () => {
      const [id, other, claim] = [unique('ses'), unique('ses'), await acquire(underTest(), nextPartition())];
      const { partition } = claim;
      const plan = planOf(claim);
      for (const session of [id, other]) for (const offset of [0, 1, 2, 3]) append(plan, claim, session, { ...messageAt(offset), trace_id: `t${offset >> 1}` });
      for (const [seq, offset] of [0, 1, 3].entries()) {
        const row = { partition, sessionId: id, seq, offset };
        write(plan, claim, { sessionId: id, turnSteps: [{ ...row, turnId: `trn_${id}`, body: {} }], agentStates: [{ ...row, state: { at: offset } }] });
      }
      await commit(underTest(), plan);
      const { sessions } = underTest().store;
      expect(await sessions.event(id, 'evt_2')).toMatchObject({ offset: 2 });
      expect(await sessions.event(id, 'evt_9')).toBeNull();
      expect([await sessions.cut(id, 1), await sessions.cut(id, 2)]).toEqual([
        { offset: 1, splitAt: 1 },
        { offset: 2, splitAt: null },
      ]);

      const change = planOf(claim);
      const changed = { ...messageAt(0), trace_id: 't0', metadata: { nul: '\u0000', half: '\ud800' } };
      write(change, claim, { sessionId: id, changedEvents: [{ partition, sessionId: id, offset: 0, text: JSON.stringify(changed) }] });
      await commit(underTest(), change);
      const deletion = planOf(claim);
      write(deletion, claim, { sessionId: id, deletedEvents: [{ partition, sessionId: id, fromOffset: 1, toOffset: 3, atMs: AT_MS }] });
      await commit(underTest(), deletion);
      expect(await underTest().store.turns.agentStates([id])).toEqual(new Map([[id, { offset: 0, state: { at: 0 } }]]));
      expect((await underTest().store.turns.staged([`trn_${id}`])).get(`trn_${id}`)).toEqual([{ seq: 0, body: {} }]);
      const late = planOf(claim);
      write(late, claim, { sessionId: id, changedEvents: [{ partition, sessionId: id, offset: 2, text: JSON.stringify(changed) }] });
      await commit(underTest(), late);

      expect(await sessions.messages(id, 9, 10)).toEqual([changed, { ...messageAt(3), trace_id: 't1' }]);
      expect(await sessions.messages(other, 9, 10)).toHaveLength(4);
      expect([await sessions.event(id, 'evt_2'), await sessions.event(id, 'evt_0')]).toEqual([null, changed]);
      expect([await sessions.cut(id, 1), await sessions.cut(id, 4)]).toEqual([{ offset: 3, splitAt: null }, null]);
    });

    it('are not cut where a trace would keep its beginning and lose its end, though another trace begins there', async () => {
      const [id, claim] = [unique('ses'), await acquire(underTest(), nextPartition())];
      const { partition } = claim;
      const plan = planOf(claim);
      for (const [offset, trace] of ['t0', 't0', 'own', 'other', 't0', 't1'].entries()) append(plan, claim, id, { ...messageAt(offset), trace_id: trace });
      await commit(underTest(), plan);
      const { sessions } = underTest().store;
      const cuts = async () => await Promise.all([0, 2, 3, 4, 5, 6].map((offset) => sessions.cut(id, offset)));
      expect(await cuts()).toEqual([
        { offset: 0, splitAt: null },
        { offset: 2, splitAt: 4 },
        { offset: 3, splitAt: 4 },
        { offset: 4, splitAt: 4 },
        { offset: 5, splitAt: null },
        null,
      ]);

      const deletion = planOf(claim);
      write(deletion, claim, { sessionId: id, deletedEvents: [{ partition, sessionId: id, fromOffset: 4, toOffset: 5, atMs: AT_MS }] });
      await commit(underTest(), deletion);
      expect((await cuts())[1]).toEqual({ offset: 2, splitAt: null });
    });

    it('are cut between two turns whose messages came in one trace', async () => {
      const [id, claim] = [unique('ses'), await acquire(underTest(), nextPartition())];
      const plan = planOf(claim);
      const message = (offset: number) => ({ ...messageAt(offset), trace_id: 't0' });
      const ready = (offset: number) => ({ ...statusAt(offset), trace_id: 't0' });
      for (const event of [message(0), message(1), ready(2), message(3), message(4), ready(5)]) append(plan, claim, id, event);
      await commit(underTest(), plan);
      const { sessions } = underTest().store;
      expect(await Promise.all([2, 3, 4].map((offset) => sessions.cut(id, offset)))).toEqual([
        { offset: 2, splitAt: 2 },
        { offset: 3, splitAt: null },
        { offset: 4, splitAt: 4 },
      ]);
    });

    it('are not cut between a turn and its message, which has waited in the turn before', async () => {
      const [id, claim] = [unique('ses'), await acquire(underTest(), nextPartition())];
      const plan = planOf(claim);
      const message = (offset: number) => ({ ...messageAt(offset), trace_id: 't0' });
      const ready = (offset: number) => ({ ...statusAt(offset), trace_id: 't0' });
      const acknowledged = (offset: number) => ({ ...ready(offset), status: 'acknowledged' }) as ConversationEvent;
      for (const event of [message(0), acknowledged(1), message(2), ready(3), acknowledged(4), ready(5), message(6), acknowledged(7), ready(8)])
        append(plan, claim, id, event);
      await commit(underTest(), plan);
      const { sessions } = underTest().store;
      expect(await Promise.all([2, 4, 6].map((offset) => sessions.cut(id, offset)))).toEqual([
        { offset: 2, splitAt: 2 },
        { offset: 4, splitAt: 4 },
        { offset: 6, splitAt: null },
      ]);
    });

    it('have the customer of their run stored with them, and deleted with them, and no other', async () => {
      const [id, run, claim] = [unique('ses'), unique('run'), await acquire(underTest(), nextPartition())];
      const { others } = underTest();
      await others.acceptRun({ id: run, partition: claim.partition, sessionId: id, createdAtMs: AT_MS, ephemeral: true });
      const [own, other] = [`cus_${run}`, unique('cus')];
      const plan = planOf(claim);
      plan.sessions.set(id, sessionOf(id, claim));
      const customers = [own, other].map((customer) => ({ partition: claim.partition, sessionId: id, id: customer, createdAtMs: AT_MS }));
      write(plan, claim, { sessionId: id, customers });
      await commit(underTest(), plan);
      expect([await others.hasCustomer(own), await others.hasCustomer(other)]).toEqual([true, true]);

      const deletion = planOf(claim);
      deletion.sessions.set(id, sessionOf(id, claim, { isDeleted: true }));
      write(deletion, claim, { sessionId: id, isErased: true });
      await commit(underTest(), deletion);

      expect([await others.hasCustomer(own), await others.hasCustomer(other)]).toEqual([false, true]);
    });

    it('have no customer of a run that begins and ends in one commit', async () => {
      const [id, claim] = [unique('ses'), await acquire(underTest(), nextPartition())];
      const plan = planOf(claim);
      write(plan, claim, { sessionId: id, customers: [{ partition: claim.partition, sessionId: id, id: `cus_${id}`, createdAtMs: AT_MS }] });
      write(plan, claim, { sessionId: id, isErased: true });
      await commit(underTest(), plan);

      expect(await underTest().others.hasCustomer(`cus_${id}`)).toBe(false);
    });

    it('are listed by the labels of their last change, each once', async () => {
      const [id, claim] = [unique('ses'), await acquire(underTest(), nextPartition())];
      for (const labels of [['b', 'a', 'a'], ['b', 'c, "d"'], []]) {
        const plan = planOf(claim);
        const { partition } = claim;
        write(plan, claim, { sessionId: id, labelled: { partition, sessionId: id, customerId: 'cus', createdAt: new Date(AT_MS).toISOString(), labels } });
        await commit(underTest(), plan);
        expect(await underTest().others.labels(id)).toEqual([...new Set(labels)].sort());
      }
    });

    it('take their dead letters with them, but that of a delivery and those of other sessions and of a run that has the session for itself', async () => {
      const [id, other, own, claim] = [unique('ses'), unique('ses'), unique('ses'), await acquire(underTest(), nextPartition())];
      const { partition } = claim;
      const { others } = underTest();
      await others.acceptRun({ id: unique('run'), partition, sessionId: own, createdAtMs: AT_MS, ephemeral: true });
      const plan = planOf(claim);
      for (const session of [id, other, own]) {
        plan.sessions.set(session, sessionOf(session, claim));
        plan.deliveries.set(`${session}-delivery`, deliveryOf(`${session}-delivery`, claim));
        const body = JSON.stringify({ v: 1, sessionId: session, text: `"sessionId":"${id}"` });
        plan.deadLetters.push({ partition, id: `${session}-command`, source: 'command', reason: 'r', body });
      }
      await commit(underTest(), plan);
      const settling = planOf(claim);
      settling.deadLetters.push({ partition, id: `${id}-delivery`, source: 'delivery', reason: 'r', body: '' });
      await commit(underTest(), settling);

      const deletion = planOf(claim);
      for (const session of [id, own]) {
        deletion.sessions.set(session, sessionOf(session, claim, { isDeleted: true }));
        write(deletion, claim, { sessionId: session, isErased: true });
      }
      await commit(underTest(), deletion);

      const letters = [`${id}-command`, `${id}-delivery`, `${other}-command`, `${own}-command`];
      expect(await Promise.all(letters.map((letter) => others.deadLetters(letter)))).toEqual([[], ['delivery'], ['command'], ['command']]);
    });

    it('leave a tombstone, their processed commands and their deliveries, without events and steps', async () => {
      const [id, run, claim] = [unique('ses'), unique('run'), await acquire(underTest(), nextPartition())];
      const { partition } = claim;
      await underTest().others.acceptRun({ id: run, partition, sessionId: id, createdAtMs: AT_MS });
      const plan = planOf(claim);
      plan.sessions.set(id, sessionOf(id, claim, { head: 1 }));
      append(plan, claim, id, messageAt(0));
      stage(plan, claim, { sessionId: id, runId: run, seq: 0 }, { role: 'user', content: 'hello' });
      plan.deliveries.set(`${id}-delivery`, deliveryOf(`${id}-delivery`, claim));
      process(plan, claim, id, 'command');
      await commit(underTest(), plan);

      const deletion = planOf(claim);
      deletion.sessions.set(id, sessionOf(id, claim, { head: 1, isDeleted: true }));
      write(deletion, claim, { sessionId: id, isErased: true });
      await commit(underTest(), deletion);

      const { store, others } = underTest();
      expect(await store.sessions.load([id])).toMatchObject([{ id, isDeleted: true }]);
      expect([await store.sessions.messages(id, 10, 10), await store.runs.transcript(run, 10)]).toEqual([[], []]);
      expect(await store.commits.processed([{ sessionId: id, commandId: 'command' }])).toHaveLength(1);
      expect(await others.deliveryState(`${id}-delivery`)).toBe('open');
    });
  });
}
