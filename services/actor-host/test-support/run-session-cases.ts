import { describe, expect, it } from 'vitest';
import { calledTools, completed, create, post, remove } from './commands.ts';
import { callbackOf, isSettled, nextDelivery, report, runOf, statusesOf, VERDICT } from './run-helpers.ts';
import { eventually, type TestCluster } from './test-cluster.ts';

/** Cases of runs and the session that they belong to or wait for, for any driver. */
export function runSessionCases(open: () => Promise<TestCluster>): void {
  describe('runs and their session', () => {
    it('serialises with a turn of the same session: the run waits for the turn, a message for the run', async () => {
      const cluster = await open();
      await cluster.host();
      const turnCall = cluster.nextCall();
      await cluster.send(create('ses_run'));
      await cluster.send(post('ses_run', 'first'));
      const { callId } = await turnCall;
      await cluster.startRun({ id: 'run_1', ephemeral: false });
      const runCall = cluster.nextCall();
      await cluster.send({ ...calledTools('ses_run', callId, []), text: 'a reply', finishReason: 'stop' });
      const run = await runCall;
      expect(run.callId).toBe('run_1-1');
      await cluster.send(post('ses_run', 'meanwhile'));
      await cluster.send(post('ses_run', 'and more'));
      const lastCall = cluster.nextCall();
      await cluster.send(calledTools('ses_run', run.callId, VERDICT));
      const last = await lastCall;
      expect(last.request.messages.slice(-2).map((message) => message.content)).toEqual(['meanwhile', 'and more']);
      await cluster.send({ ...calledTools('ses_run', last.callId, []), text: 'the end', finishReason: 'stop' });
      await eventually(async () => (await statusesOf(cluster, 'ses_run')).filter((line) => line === 'ready').length === 3);

      expect(await statusesOf(cluster, 'ses_run')).toEqual([
        ...['user_message', 'acknowledged', 'typing', 'assistant_message', 'ready'],
        ...['acknowledged', 'processing/thinking', 'user_message', 'user_message', 'ready'],
        ...['acknowledged', 'typing', 'assistant_message', 'ready'],
      ]);
      expect(await cluster.count('sessions', 'deleted_at is null')).toBe(1);
    });

    it('fails a run at its start when a hundred already wait for the session, and starts those', async () => {
      const cluster = await open();
      await cluster.host();
      await cluster.send(create('ses_run'));
      const next = cluster.nextCall();
      await cluster.startRun({ id: 'run_1', ephemeral: false });
      const { callId } = await next;
      await Promise.all(Array.from({ length: 100 }, (_, n) => cluster.startRun({ id: `run_waiting_${n}`, ephemeral: false })));
      await cluster.startRun({ id: 'run_late', ephemeral: false });
      await eventually(() => isSettled(cluster, 'run_late'));
      expect(await runOf(cluster, 'run_late')).toMatchObject({ state: 'failed', error: { code: 'session_error' } });
      expect(await callbackOf(cluster, 'run_late')).toMatchObject({ status: 'failed', error: { code: 'session_error' } });
      expect(await cluster.count('runs', `state = 'accepted'`)).toBe(100);
      await cluster.send(calledTools('ses_run', callId, VERDICT));
      await eventually(async () => (await cluster.count('runs', `id like 'run_waiting_%' and state = 'running'`)) === 1);
    });

    it('DESIGN 5: a run that waits for its session is settled when its time is over', async () => {
      const cluster = await open();
      await cluster.host();
      await cluster.send(create('ses_run'));
      await cluster.startRun({ id: 'run_1', ephemeral: false });
      await cluster.startRun({ id: 'run_2', ephemeral: false, expiresInMs: 300 });
      await eventually(() => isSettled(cluster, 'run_2'));
      expect(await runOf(cluster, 'run_2')).toMatchObject({ state: 'failed', error: { code: 'timeout', details: { timeout_seconds: 60 } } });
      expect(await callbackOf(cluster, 'run_2')).toMatchObject({ status: 'failed', output: null, error: { code: 'timeout' } });
      expect(await runOf(cluster)).toMatchObject({ state: 'running' });
    });

    it('fails a run whose session is deleted under it, with those that wait behind it, and calls back for each', async () => {
      const cluster = await open();
      await cluster.host();
      await cluster.send(create('ses_run'));
      await cluster.startRun({ id: 'run_1', ephemeral: false });
      await cluster.startRun({ id: 'run_2', ephemeral: false });
      await cluster.send(remove('ses_run'));
      await eventually(() => isSettled(cluster, 'run_2'));
      for (const id of ['run_1', 'run_2']) {
        expect(await runOf(cluster, id)).toMatchObject({ state: 'failed', error: { code: 'session_error' } });
        expect(await callbackOf(cluster, id)).toMatchObject({ status: 'failed', run_id: id });
      }
    });

    it.each([
      ['with a callback', 'https://example.com/callback'],
      ['without one', null],
    ])('retains the session of a run %s until the end of the turn that was in progress when nothing else was left to do', async (_, callbackUrl) => {
      const cluster = await open();
      await cluster.host();
      const [runCall, delivery] = [cluster.nextCall(), nextDelivery(cluster)];
      await cluster.startRun({ id: 'run_1', callbackUrl });
      const { callId } = await runCall;
      await cluster.send(post('ses_run', 'and who are you?'));
      const turnCall = cluster.nextCall();
      await cluster.send(calledTools('ses_run', callId, VERDICT));
      const turn = await turnCall;
      const last = callbackUrl === null ? create('ses_run') : report((await delivery).effectId, 'delivered', 1);
      await cluster.send(last);
      await eventually(async () => (await cluster.count('seen', `command_id = '${last.commandId}'`)) === 1);
      expect(await cluster.count('sessions', 'deleted_at is null')).toBe(1);
      await cluster.send(completed('ses_run', turn.callId, 'a reply'));
      await eventually(async () => (await cluster.count('sessions', 'deleted_at is not null')) === 1);
      expect(await cluster.log('ses_run')).toEqual([]);
      expect(await cluster.count('timers')).toBe(0);
    });
  });
}
