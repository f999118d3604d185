import { describe, expect, it } from 'vitest';
import type { SessionRecord } from '#shared/contracts/agent/session.ts';
import { calledTools, completed, create, patch, post, remove } from './commands.ts';
import { isSettled, statusesOf, VERDICT } from './run-helpers.ts';
import { eventually, type TestCluster } from './test-cluster.ts';

/** Cases of session changes, for any driver. */
export function patchCases(open: () => Promise<TestCluster>): void {
  const recordOf = async (cluster: TestCluster, id: string) =>
    (await cluster.rows<{ record: SessionRecord }>('select record from sessions where id = $1', [id]))[0]?.record ?? null;

  describe('a session that is changed', () => {
    it('is not found when it was never created or is deleted, and the change has no effect', async () => {
      const cluster = await open();
      await cluster.host();
      await cluster.send(patch('ses_b', 'early', { title: 'T' }));
      await cluster.send(create('ses_a'));
      await cluster.send(remove('ses_a'));
      await cluster.send(patch('ses_a', 'late', { title: 'T' }));
      await eventually(() => cluster.replies.length === 4);

      const refusals = cluster.replies.filter(({ commandId }) => ['early', 'late'].includes(commandId));
      expect(refusals.map(({ answer }) => answer)).toMatchObject(Array(2).fill({ ok: false, code: 'session.not_found' }));
      expect(await recordOf(cluster, 'ses_a')).toMatchObject({ title: null });
      expect(await recordOf(cluster, 'ses_b')).toBeNull();
    });

    it('is unchanged when the change is refused', async () => {
      const cluster = await open();
      await cluster.host();
      await cluster.send(create('ses_a'));
      await eventually(() => cluster.replies.length === 1);
      const before = await recordOf(cluster, 'ses_a');
      await cluster.send(patch('ses_a', 'ahead', { title: 'T', clientOffset: 1 }));
      await eventually(() => cluster.replies.length === 2);

      expect(cluster.replies[1]?.answer).toMatchObject({ ok: false, code: 'request.invalid' });
      expect(await recordOf(cluster, 'ses_a')).toEqual(before);
    });

    it('DESIGN 4: a change of a session is a command: stored and answered once, in order with the others, and read by the next owner', async () => {
      const cluster = await open();
      const first = await cluster.host();
      await cluster.send({ ...create('ses_a'), metadata: { plan: 'gold', region: 'eu' }, labels: ['open'] });
      await cluster.send({ ...post('ses_a', 'hello'), triggersTurn: false });
      const change = patch('ses_a', 'change', { title: 'Warranty', setMetadata: { plan: 'silver' }, unsetMetadata: ['region'], clientOffset: 0 });
      await cluster.send(change, 'first');
      await cluster.send(patch('ses_a', 'labels', { upsertLabels: ['vip'], removeLabels: ['open'] }));
      await cluster.send(change, 'second');
      await eventually(() => cluster.replies.length === 5);
      const changed = { title: 'Warranty', metadata: { plan: 'silver' }, labels: ['vip'], consumption_offsets: { client: 0 }, last_offset: 0, mode: 'auto' };

      const record = await recordOf(cluster, 'ses_a');
      expect(record).toMatchObject(changed);
      expect(Date.parse(record?.updated_at ?? '')).toBeGreaterThanOrEqual(Date.parse(record?.created_at ?? ''));
      const answers = cluster.replies.filter(({ commandId }) => commandId === 'change');
      expect(answers.map(({ repeat }) => repeat)).toEqual([false, true]);
      expect(answers[1]?.answer).toEqual(answers[0]?.answer);
      expect(answers[0]?.answer).toMatchObject({ ok: true, value: { session: { title: 'Warranty', labels: ['open'] } } });
      expect(cluster.replies.find(({ commandId }) => commandId === 'labels')?.answer).toEqual({ ok: true, value: { session: record } });

      await first.stop();
      await cluster.host();
      await cluster.send(patch('ses_a', 'title', { title: null }));
      await eventually(() => cluster.replies.length === 6);
      expect(await recordOf(cluster, 'ses_a')).toMatchObject({ ...changed, title: null });
      expect(await cluster.rows('select label, customer_id, session_id from session_labels')).toEqual([
        { label: 'vip', customer_id: 'cus_1', session_id: 'ses_a' },
      ]);
    });

    it('finishes the turn in progress when it switches to manual mode; later messages follow the mode', async () => {
      const cluster = await open();
      await cluster.host();
      const next = cluster.nextCall();
      await cluster.send(create('ses_a'));
      await cluster.send(post('ses_a', 'one'));
      const { callId } = await next;
      await cluster.send(patch('ses_a', 'manual', { mode: 'manual' }));
      await cluster.send(post('ses_a', 'two'));
      await cluster.send(completed('ses_a', callId, 'a reply'));
      await eventually(async () => (await cluster.log('ses_a')).at(-1)?.kind === 'status' && (await cluster.count('effects', `state = 'open'`)) === 0);
      await eventually(() => cluster.replies.length === 4);

      expect((await cluster.log('ses_a')).flatMap((event) => ('text' in event ? [event.text] : []))).toEqual(['one', 'two', 'a reply']);
      expect((await cluster.log('ses_a')).at(-1)).toMatchObject({ status: 'ready' });
      expect(await cluster.count('effects')).toBe(1);

      const again = cluster.nextCall();
      await cluster.send(patch('ses_a', 'auto', { mode: 'auto' }));
      await cluster.send(post('ses_a', 'three'));
      expect((await again).request.messages.map(({ content }) => content)).toEqual([expect.anything(), 'one', 'two', 'a reply', 'three']);
    });

    it('DESIGN 5: drops the turn that waits for a run when it switches to manual mode; its messages are in the prompt of the next one', async () => {
      const cluster = await open();
      const first = await cluster.host();
      await cluster.send(create('ses_run'));
      const ofRun = cluster.nextCall();
      await cluster.startRun({ id: 'run_1', ephemeral: false });
      const run = await ofRun;
      await cluster.send(post('ses_run', 'I want a refund'));
      await cluster.send(patch('ses_run', 'manual', { mode: 'manual' }));
      await cluster.send(post('ses_run', 'is someone there?'));
      await eventually(() => cluster.replies.length === 4);
      await first.stop();
      await cluster.host();
      await cluster.send(calledTools('ses_run', run.callId, VERDICT));
      await eventually(() => isSettled(cluster));
      expect(await statusesOf(cluster, 'ses_run')).toEqual(['acknowledged', 'processing/thinking', 'user_message', 'user_message', 'ready']);

      const again = cluster.nextCall();
      await cluster.send(patch('ses_run', 'auto', { mode: 'auto' }));
      await cluster.send(post('ses_run', 'thanks'));
      expect((await again).request.messages.slice(-3).map(({ content }) => content)).toEqual(['I want a refund', 'is someone there?', 'thanks']);
    });
  });
}
