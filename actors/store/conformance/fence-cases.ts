import { describe, expect, it } from 'vitest';
import type { CommitPlan } from '../../runtime/apply/commit-plan.ts';
import type { PartitionClaim } from '../port/partition-store.ts';
import { AT_MS, append, arm, callOf, commit, deliveryOf, messageAt, open, planOf, process, sessionOf, stage, write } from './plans.ts';
import { acquire, nextPartition, type StoreUnderTest, type UnderTest, unique } from './store-under-test.ts';

/** One row of every kind, under ids of its own. */
interface Names {
  session: string;
  run: string;
}

function addRows(plan: CommitPlan, claim: PartitionClaim, { session, run }: Names): void {
  const { partition } = claim;
  plan.sessions.set(session, sessionOf(session, claim, { head: 1 }));
  append(plan, claim, session, messageAt(0));
  process(plan, claim, session, 'command');
  open(plan, callOf(`${session}-call`, claim));
  arm(plan, claim, `${session}-timer`, AT_MS, '{}');
  write(plan, claim, { runs: [{ partition, id: run, state: 'running', output: null, error: null, startedAtMs: AT_MS, completedAtMs: null }] });
  stage(plan, claim, { sessionId: session, runId: run, seq: 0 }, { role: 'user', content: 'hello' });
  plan.runCalls.push({ partition, runId: run, effectId: 'call', outcome: { type: 'tool_call' } as never, endedAtMs: AT_MS });
  plan.deliveries.set(`${session}-delivery`, deliveryOf(`${session}-delivery`, claim));
  plan.deadLetters.push({ partition, id: `${session}-letter`, source: 'command', reason: 'r', body: 'b' });
}

/** How many of them are stored. */
async function rowsOf({ store, others }: StoreUnderTest, { partition }: PartitionClaim, { session, run }: Names): Promise<number> {
  const found = [
    (await store.sessions.load([session])).length,
    (await store.sessions.messages(session, 10, 10)).length,
    (await store.commits.processed([{ sessionId: session, commandId: 'command' }])).length,
    (await store.effects.open([partition])).filter(({ effect }) => effect.sessionId === 'ses' && effect.id.startsWith(session)).length,
    (await store.timers.of([partition])).filter(({ key }) => key.startsWith(session)).length,
    (await others.run(run)).state === 'running' ? 1 : 0,
    (await store.runs.transcript(run, 10)).length,
    (await others.runCalls(run)).length,
    (await others.deliveryState(`${session}-delivery`)) === null ? 0 : 1,
    (await others.deadLetters(`${session}-letter`)).length,
  ];
  return found.reduce((sum, count) => sum + count, 0);
}

const KINDS = 10;

export function fenceCases(underTest: UnderTest): void {
  const names = async ({ partition }: PartitionClaim): Promise<Names> => {
    const found = { session: unique('ses'), run: unique('run') };
    await underTest().others.acceptRun({ id: found.run, partition, sessionId: found.session, createdAtMs: AT_MS });
    return found;
  };
  const place = async (partition: number) => (await underTest().store.partitions.read([partition])).get(partition);

  describe('a commit', () => {
    it('moves cursor and commit number of its partitions', async () => {
      const claim = await acquire(underTest(), nextPartition());
      const { epoch, owner, commitNo } = claim;
      const plan = planOf(claim);
      plan.advance(claim, 77, '@77');

      expect(await commit(underTest(), plan)).toEqual({ kind: 'committed', owned: new Set([claim.partition]) });
      expect(await place(claim.partition)).toEqual({ epoch, owner, commitNo: commitNo + 1 });
      expect(await acquire(underTest(), claim.partition)).toMatchObject({ cursor: 77, cursorFingerprint: '@77' });
    });

    it('of no partition is stored, and so is one with a partition that the store does not have', async () => {
      const claim = await acquire(underTest(), nextPartition());

      expect(await commit(underTest(), planOf())).toEqual({ kind: 'committed', owned: new Set() });
      const missing = { ...claim, partition: 1_000 };
      expect(await commit(underTest(), planOf(claim, missing))).toEqual({ kind: 'committed', owned: new Set([claim.partition]) });
    });

    it.each<[string, (claim: PartitionClaim) => PartitionClaim]>([
      ['epoch', (claim) => ({ ...claim, epoch: claim.epoch - 1 })],
      ['commit number', (claim) => ({ ...claim, commitNo: claim.commitNo + 1 })],
      ['owner', (claim) => ({ ...claim, owner: 'another' })],
    ])('drops a partition with another %s, with its rows of every kind, and stores the others', async (_, changed) => {
      const [ours, lost] = [await acquire(underTest(), nextPartition()), await acquire(underTest(), nextPartition())];
      const [stored, dropped] = [await names(ours), await names(lost)];
      const before = await place(lost.partition);
      const plan = planOf(ours, changed(lost));
      addRows(plan, ours, stored);
      addRows(plan, lost, dropped);

      expect(await commit(underTest(), plan)).toEqual({ kind: 'committed', owned: new Set([ours.partition]) });
      expect(await rowsOf(underTest(), ours, stored)).toBe(KINDS);
      expect(await rowsOf(underTest(), lost, dropped)).toBe(0);
      expect(await place(lost.partition)).toEqual(before);
    });

    it('that comes a second time is dropped before its rows', async () => {
      const claim = await acquire(underTest(), nextPartition());
      const late = { ...claim };
      const rows = await names(claim);
      for (const [own, owned] of [
        [claim, new Set([claim.partition])],
        [late, new Set()],
      ] as const) {
        const plan = planOf(own);
        addRows(plan, own, rows);
        expect(await commit(underTest(), plan)).toEqual({ kind: 'committed', owned });
      }
      expect(await rowsOf(underTest(), claim, rows)).toBe(KINDS);
    });

    it('with a command that was processed before, or an offset that is taken, is reported as repeated and stores nothing', async () => {
      const [one, other] = [await acquire(underTest(), nextPartition()), await acquire(underTest(), nextPartition())];
      const [stored, dropped] = [await names(one), await names(other)];
      const first = planOf(one);
      addRows(first, one, stored);
      await commit(underTest(), first);
      const before = [await place(one.partition), await place(other.partition)];

      const repeatedCommand = planOf(one, other);
      addRows(repeatedCommand, other, dropped);
      process(repeatedCommand, one, stored.session, 'command');
      const takenOffset = planOf(one, other);
      addRows(takenOffset, other, dropped);
      append(takenOffset, one, stored.session, messageAt(0));

      for (const plan of [repeatedCommand, takenOffset]) expect(await commit(underTest(), plan)).toMatchObject({ kind: 'repeated' });
      expect(await rowsOf(underTest(), other, dropped)).toBe(0);
      expect([await place(one.partition), await place(other.partition)]).toEqual(before);
      const known = await underTest().store.commits.processed([
        { sessionId: stored.session, commandId: 'command' },
        { sessionId: stored.session, commandId: 'never' },
      ]);
      expect(known).toEqual([{ sessionId: stored.session, commandId: 'command', reply: { ok: false, code: 'not_found', message: 'command' } }]);
    });

    it('replaces the reply of a command that was refused for the moment, in partitions that are still owned', async () => {
      const [ours, lost] = [await acquire(underTest(), nextPartition()), await acquire(underTest(), nextPartition())];
      const [kept, dropped] = [await names(ours), await names(lost)];
      const commands = [kept, dropped].map(({ session }) => ({ sessionId: session, commandId: 'command' }));
      const first = planOf(ours, lost);
      process(first, ours, kept.session, 'command', 'refused');
      process(first, lost, dropped.session, 'command', 'refused');
      await commit(underTest(), first);
      const again = planOf(ours, { ...lost, epoch: lost.epoch - 1 });
      process(again, ours, kept.session, 'command', 'again', true);
      process(again, lost, dropped.session, 'command', 'again', true);

      expect(await commit(underTest(), again)).toEqual({ kind: 'committed', owned: new Set([ours.partition]) });
      const stored = await underTest().store.commits.processed(commands);
      const messages = new Map(stored.map(({ sessionId, reply }) => [sessionId, reply?.ok === false ? reply.message : null]));
      expect(commands.map(({ sessionId }) => messages.get(sessionId))).toEqual(['again', 'refused']);
    });

    it('that the store refuses stores nothing', async () => {
      const claim = await acquire(underTest(), nextPartition());
      const rows = await names(claim);
      const before = await place(claim.partition);
      const plan = planOf(claim);
      addRows(plan, claim, rows);
      process(plan, claim, rows.session, 'nul \0');

      await expect(commit(underTest(), plan)).rejects.toMatchObject({ code: '22021' });
      expect(await rowsOf(underTest(), claim, rows)).toBe(0);
      expect(await place(claim.partition)).toEqual(before);
    });

    it('is refused for nothing that is in a body, a dead letter or an event', async () => {
      const claim = await acquire(underTest(), nextPartition());
      const { session } = await names(claim);
      const odd = 'nul \0, a lone surrogate \ud800, a quote " and ü';
      const plan = planOf(claim);
      plan.sessions.set(session, sessionOf(session, claim, { head: 1 }));
      append(plan, claim, session, messageAt(0, odd));
      plan.deadLetters.push({ partition: claim.partition, id: session, source: 'command', reason: 'nul \0', body: 'nul \0' });

      expect(await commit(underTest(), plan)).toMatchObject({ kind: 'committed' });
      expect(await underTest().store.sessions.messages(session, 0, 1)).toEqual([messageAt(0, odd)]);
      expect(await underTest().others.deadLetters(session)).toEqual(['command']);
    });
  });
}
