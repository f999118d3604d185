import { describe, expect, it } from 'vitest';
import type { RunProgress } from '../../runtime/apply/commit-rows.ts';
import type { StepMessage } from '../../tool-loop/types.ts';
import { AT_MS, commit, planOf, process, stage, write } from './plans.ts';
import { acquire, LONG_MS, nextPartition, type UnderTest, unique } from './store-under-test.ts';

const userSays = (content: string) => ({ role: 'user', content }) as unknown as StepMessage;
const modelSays = (content: string) => ({ role: 'assistant', content }) as unknown as StepMessage;

export function runCases(underTest: UnderTest): void {
  const accept = async (partition: number, createdAtMs = AT_MS) => {
    const run = { id: unique('run'), partition, sessionId: unique('ses'), createdAtMs };
    await underTest().others.acceptRun(run);
    return run;
  };

  describe('runs', () => {
    it('are loaded as they were accepted, and those that do not exist are omitted', async () => {
      const { id, sessionId } = await accept(nextPartition());

      const [run, ...others] = await underTest().store.runs.load([id, unique('run')]);
      expect(others).toEqual([]);
      expect(run).toMatchObject({ id, sessionId, createdAtMs: AT_MS, callbackUrl: null, traceparent: null, metadata: null });
      expect([typeof run?.expiresAtMs, typeof run?.timeoutMs, JSON.parse(run?.input ?? '')]).toEqual(['number', 'number', { text: 'input' }]);
    });

    it('keep their start, and never change once they are settled', async () => {
      const claim = await acquire(underTest(), nextPartition());
      const { id } = await accept(claim.partition);
      const running: RunProgress = { partition: claim.partition, id, state: 'running', output: null, error: null, startedAtMs: AT_MS, completedAtMs: null };
      const settled: RunProgress = { ...running, state: 'succeeded', output: { ok: true }, startedAtMs: null, completedAtMs: AT_MS + 1 };
      const error = { code: 'timeout' as const, message: 'late', details: {} };
      for (const progress of [running, settled, { ...settled, state: 'failed' as const, output: null, error, completedAtMs: AT_MS + 2 }]) {
        expect(await underTest().store.runs.settled([id])).toEqual(new Set(progress.error === null ? [] : [id]));
        const plan = planOf(claim);
        write(plan, claim, { runs: [progress] });
        await commit(underTest(), plan);
      }

      const stored = { state: 'succeeded', output: { ok: true }, error: null, startedAtMs: AT_MS, completedAtMs: AT_MS + 1 };
      expect(await underTest().others.run(id)).toEqual(stored);
    });

    it('have a transcript in order, of which a prefix, the end or the messages of the model can be read', async () => {
      const [run, claim] = [unique('run'), await acquire(underTest(), nextPartition())];
      const messages = [userSays('0'), modelSays('1 \0 \ud800'), userSays('2'), modelSays('3')];
      const plan = planOf(claim);
      for (const seq of [3, 0, 2, 1]) stage(plan, claim, { sessionId: 'ses', runId: run, seq }, messages[seq] as StepMessage);
      await commit(underTest(), plan);
      const { runs } = underTest().store;

      expect(await runs.transcript(run, 3)).toEqual(messages.slice(0, 3));
      expect(await runs.assistantMessages(run)).toEqual([messages[3], messages[1]]);
      const staged = await runs.staged(
        new Map([
          [run, 2],
          [unique('run'), 0],
        ]),
      );
      expect(staged).toEqual(
        new Map([
          [
            run,
            new Map([
              [2, messages[2]],
              [3, messages[3]],
            ]),
          ],
        ]),
      );
      expect([await runs.transcript(unique('run'), 9), await runs.assistantMessages(unique('run'))]).toEqual([[], []]);
    });

    it('that were accepted and whose start is not applied are found, oldest first, in the given partitions and of an age', async () => {
      const claim = await acquire(underTest(), nextPartition());
      const { partition } = claim;
      // A store may hold runs of other cases: these are older than those.
      const oldest = Date.parse('2001-01-01T00:00:00Z');
      const [second, first, applied, running] = [
        await accept(partition, oldest + 2),
        await accept(partition, oldest + 1),
        await accept(partition, oldest),
        await accept(partition, oldest),
      ];
      const elsewhere = await accept(nextPartition(), oldest);
      const plan = planOf(claim);
      process(plan, claim, applied.sessionId, applied.id);
      write(plan, claim, { runs: [{ partition, id: running.id, state: 'running', output: null, error: null, startedAtMs: AT_MS, completedAtMs: null }] });
      await commit(underTest(), plan);
      const find = (minAgeMs: number, limit = 500) => underTest().store.runs.unstarted([partition], { minAgeMs, limit });

      const { id, sessionId } = first;
      expect((await find(0))[0]).toEqual({ id, partition, sessionId, traceparent: null, createdAtMs: oldest + 1 });
      const ids = (await find(0)).map((run) => run.id);
      expect(ids.slice(0, 2)).toEqual([first.id, second.id]);
      for (const run of [applied, running, elsewhere]) expect(ids).not.toContain(run.id);
      expect(await find(0, 1)).toHaveLength(1);
      expect(await find(1_000_000 * LONG_MS)).toEqual([]);
    });

    it('name tool lists, of which those that are stored are returned', async () => {
      const hash = unique('list');
      await underTest().others.storeTools(hash, [{ name: 'find' }]);

      expect(await underTest().store.runs.toolLists([hash, unique('list')])).toEqual(new Map([[hash, [{ name: 'find' }]]]));
    });
  });

  it('a configuration that is not stored is null', async () => {
    expect(await underTest().store.bundles.read(unique('hash'))).toBeNull();
    expect(await underTest().store.bundles.newestHash()).toBeNull();
  });
}
