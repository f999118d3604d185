import { describe, expect, it } from 'vitest';
import { actorFields } from '#bus/messages/actor-fields.ts';
import type { SessionCommand } from '#bus/messages/session.ts';
import { calledTools, cancel, create, post } from './commands.ts';
import { callbackOf, HEADER, isSettled, nextItem, runOf, statusesOf, VERDICT } from './run-helpers.ts';
import { eventually, quickTimes, type TestCluster } from './test-cluster.ts';

const CANCELLED = { code: 'engine_error', message: 'the run was cancelled', details: { reason: 'cancelled' } };

/** Cases of runs that are cancelled, for any driver. */
export function runCancelCases(open: () => Promise<TestCluster>): void {
  describe('a cancelled run', () => {
    it('DESIGN 5: fails at once, calls back, and its late results change nothing; a repeat gets the first reply', async () => {
      const cluster = await open();
      await cluster.host();
      const next = cluster.nextCall();
      await cluster.startRun({ id: 'run_1' });
      const { callId } = await next;
      await cluster.send(cancel('ses_run', 'run_1'), 'first');
      await eventually(() => isSettled(cluster));
      await cluster.send(cancel('ses_run', 'run_1'), 'again');
      await cluster.send(calledTools('ses_run', callId, VERDICT));
      await eventually(() => cluster.replies.length === 2);

      expect(cluster.replies.map(({ repeat, answer }) => ({ repeat, ok: answer.ok }))).toEqual([
        { repeat: false, ok: true },
        { repeat: true, ok: true },
      ]);
      expect(await runOf(cluster)).toMatchObject({ state: 'failed', output: null, error: CANCELLED });
      expect(await callbackOf(cluster)).toMatchObject({ status: 'failed', error: CANCELLED });
      expect(await statusesOf(cluster, 'ses_run')).toEqual(['acknowledged', 'processing/thinking', 'error', 'ready']);
      expect(await cluster.count('effects', `turn_id = 'run_1' and state = 'superseded'`)).toBe(1);
      expect(await cluster.count('timers', `key = 'run_1-deadline'`)).toBe(0);
    });

    it('that waits for its session, or whose start has not come, settles and never begins', async () => {
      const cluster = await open();
      await cluster.host();
      await cluster.send(create('ses_run'));
      const next = cluster.nextCall();
      await cluster.startRun({ id: 'run_1', ephemeral: false });
      const { callId } = await next;
      await cluster.startRun({ id: 'run_2', ephemeral: false });
      await cluster.acceptRun({ id: 'run_3', sessionId: 'ses_own' });
      await cluster.send(cancel('ses_run', 'run_2'));
      await cluster.send(cancel('ses_own', 'run_3'));
      await cluster.startRun({ id: 'run_4', ephemeral: false });
      await eventually(async () => (await isSettled(cluster, 'run_2')) && (await isSettled(cluster, 'run_3')));
      for (const id of ['run_2', 'run_3']) expect(await runOf(cluster, id)).toMatchObject({ state: 'failed', error: CANCELLED });

      await cluster.send(calledTools('ses_run', callId, VERDICT));
      await eventually(async () => (await runOf(cluster, 'run_4'))['state'] === 'running');
      expect(await cluster.log('ses_own')).toEqual([]);
    });

    it('that has settled otherwise is refused', async () => {
      const cluster = await open();
      await cluster.host();
      const next = cluster.nextCall();
      await cluster.startRun({ id: 'run_1' });
      await cluster.send(calledTools('ses_run', (await next).callId, VERDICT));
      await eventually(() => isSettled(cluster));
      await cluster.send(cancel('ses_run', 'run_1'));
      await eventually(() => cluster.replies.length === 1);

      expect(cluster.replies[0]?.answer).toEqual({ ok: false, code: 'request.conflict', message: 'the run has settled already' });
      expect(await runOf(cluster)).toMatchObject({ state: 'succeeded', error: null });
    });

    it('DESIGN 5: waits for a tool call that has begun and must not be repeated; the others are aborted', async () => {
      const cluster = await open();
      await cluster.host();
      await callRefunds(cluster);
      await claim(cluster, 'run_1-3');

      await cluster.send(cancel('ses_run', 'run_1'));
      await eventually(() => cluster.replies.length === 1);
      expect(await isSettled(cluster)).toBe(false);
      expect(await cluster.rows(`select id from effects where turn_id = 'run_1' and state = 'superseded'`)).toEqual([{ id: 'run_1-4' }]);
      await cluster.send(post('ses_run', 'and who are you?'));
      await cluster.send(refunded('run_1-3'));
      await eventually(() => isSettled(cluster));

      expect(await runOf(cluster)).toMatchObject({ state: 'failed', error: CANCELLED });
      const log = await cluster.log('ses_run');
      const event = log.find(({ kind }) => kind === 'tool');
      expect(event).toMatchObject({ tool_calls: [{ tool_id: 'shop:refund', arguments: { order: 'A' }, result: { data: 'refunded' } }] });
      expect(event).toHaveProperty('tool_calls.length', 1);
      // The turn of the message begins when the run has settled.
      expect(log.map((one) => (one.kind === 'status' ? one.status : one.kind)).slice(-6)).toEqual([
        'user_message',
        'tool',
        'error',
        'ready',
        'acknowledged',
        'typing',
      ]);
    });

    it('DESIGN 5: a call that a worker was about to claim is not made, also when the host dies before its commit', async () => {
      const cluster = await open();
      const first = await cluster.host();
      await callRefunds(cluster);
      expect(await claim(cluster, 'run_1-3')).toBe(true);
      // So that the next commit is the cancellation's.
      await eventually(async () => (await cluster.count('effects', `state = 'open' and unpublished`)) === 0);
      first.faults.push('die-before');
      await cluster.send(cancel('ses_run', 'run_1'));
      await eventually(() => first.isCrashed());

      expect(await claim(cluster, 'run_1-4')).toBe(false);
      await cluster.host({ times: quickTimes });
      await eventually(() => cluster.replies.length === 1);
      expect(await isSettled(cluster)).toBe(false);
      expect(await cluster.rows(`select id from effects where turn_id = 'run_1' and state = 'superseded'`)).toEqual([{ id: 'run_1-4' }]);
      await cluster.send(refunded('run_1-3'));
      await eventually(() => isSettled(cluster));
      expect(await runOf(cluster)).toMatchObject({ state: 'failed', error: CANCELLED });
      expect((await cluster.log('ses_run')).filter(({ kind }) => kind === 'tool')).toMatchObject([{ tool_calls: [{ arguments: { order: 'A' } }] }]);
    });

    it('DESIGN 5: has in its log what had settled, when nothing is left to wait for', async () => {
      const cluster = await open();
      await cluster.host();
      await callRefunds(cluster);
      await cluster.send(refunded('run_1-3'));
      await cluster.send(cancel('ses_run', 'run_1'));
      await eventually(() => isSettled(cluster));

      const log = await cluster.log('ses_run');
      expect(log.map((one) => (one.kind === 'status' ? one.status : one.kind)).slice(-3)).toEqual(['tool', 'error', 'ready']);
      expect(log.find(({ kind }) => kind === 'tool')).toMatchObject({ tool_calls: [{ arguments: { order: 'A' }, result: { data: 'refunded' } }] });
      expect(await claim(cluster, 'run_1-4')).toBe(false);
    });

    it('leaves the calls of another run alone', async () => {
      const cluster = await open();
      await cluster.host();
      await callRefunds(cluster);
      await cluster.startRun({ id: 'run_2', sessionId: 'ses_run', ephemeral: false });
      await cluster.send(cancel('ses_run', 'run_2'));
      await eventually(() => isSettled(cluster, 'run_2'));

      expect(await claim(cluster, 'run_1-3')).toBe(true);
    });
  });
}

const RUN = { ...HEADER, sessionId: 'ses_run', ...actorFields('run_1') };

/** Starts a run whose model calls a tool twice that must not be repeated: effects `run_1-3` and `run_1-4`. */
async function callRefunds(cluster: TestCluster): Promise<void> {
  const tools = [{ name: 'refund', title: null, description: null, inputSchema: { type: 'object' }, repeatable: false }];
  await cluster.rows(`insert into tool_lists (hash, tools) values ('h1', $1)`, [JSON.stringify(tools)]);
  const list = nextItem(cluster, 'tool');
  await cluster.startRun({ id: 'run_1', routineId: 'refund' });
  const { effectId } = (await list) as { effectId: string };
  const asked = cluster.nextCall();
  await cluster.send({ ...RUN, type: 'tools.listed', commandId: effectId, callId: effectId, lists: { shop: 'h1' }, unavailable: {} });
  const item = nextItem(cluster, 'tool');
  const calls = ['A', 'B'].map((order) => ({ id: order, name: 'shop__refund', arguments: { order } }));
  await cluster.send(calledTools('ses_run', (await asked).callId, calls));
  await item;
}

/** As a worker does. */
async function claim(cluster: TestCluster, effectId: string): Promise<boolean> {
  return (await cluster.rows('insert into claims (effect_id) values ($1) on conflict (effect_id) do nothing returning effect_id', [effectId])).length === 1;
}

function refunded(effectId: string): SessionCommand {
  const outcome = { type: 'result' as const, data: 'refunded', metadata: {}, isError: false };
  return { ...RUN, type: 'tool.completed', commandId: effectId, callId: effectId, outcome };
}
