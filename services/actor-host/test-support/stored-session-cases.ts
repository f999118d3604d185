import { describe, expect, it } from 'vitest';
import { completed, create, post, remove } from './commands.ts';
import { eventually, type TestCluster } from './test-cluster.ts';

/** Cases of one host: what is stored of a session, of its timers and of its effects. */
export function storedSessionCases(open: () => Promise<TestCluster>): void {
  describe('what a host stores of a session', () => {
    it('DESIGN 4: timers of a partition without commands fire', async () => {
      const cluster = await open();
      await cluster.host({ turnTimeoutMs: 200 });
      await cluster.send(create('ses_a'));
      await cluster.send(post('ses_a', 'hello'));
      await eventually(async () => (await cluster.log('ses_a')).at(-1)?.kind === 'status' && (await cluster.log('ses_a')).length === 5);
      expect((await cluster.log('ses_a')).slice(3)).toMatchObject([{ status: 'error' }, { status: 'ready' }]);
    });

    it('DESIGN 4: a deleted session leaves a tombstone: later commands are refused, late results change nothing', async () => {
      const cluster = await open();
      await cluster.host();
      const next = cluster.nextCall();
      await cluster.send(create('ses_a'));
      await cluster.send(post('ses_a', 'hello'));
      const { callId } = await next;
      await cluster.send(remove('ses_a'));
      await eventually(() => cluster.replies.length === 3);
      expect(cluster.replies[2]?.answer).toEqual({ ok: true, value: {} });
      expect(await cluster.log('ses_a')).toEqual([]);
      expect(cluster.notices.at(-1)).toMatchObject({ isDeleted: true });
      await cluster.send(completed('ses_a', callId, 'too late'));
      await cluster.send(post('ses_a', 'hello?'));
      await cluster.send({ ...create('ses_a'), commandId: 'again' });
      await cluster.send({ ...remove('ses_a'), commandId: 'once more' });
      await eventually(() => cluster.replies.length === 6);

      expect(cluster.replies.slice(3).map(({ answer }) => !answer.ok && answer.code)).toEqual(['session.not_found', 'session.exists', 'session.not_found']);
      expect(await cluster.log('ses_a')).toEqual([]);
      expect(await cluster.count('sessions', 'deleted_at is not null')).toBe(1);
      expect(await cluster.count('timers')).toBe(0);
      expect(await cluster.count('effects', `state = 'open'`)).toBe(0);
    });

    it('DESIGN 5: an effect refers to its inputs and holds no text of the conversation', async () => {
      const cluster = await open();
      await cluster.host();
      const next = cluster.nextCall();
      await cluster.send(create('ses_a'));
      await cluster.send(post('ses_a', 'a sentence that is stored once'));
      const call = await next;
      expect(JSON.stringify(call.request)).toContain('a sentence that is stored once');
      expect(JSON.stringify(await cluster.rows('select * from effects'))).not.toContain('a sentence');
      expect(JSON.stringify(await cluster.rows('select * from outbox'))).not.toContain('a sentence');
    });
  });
}
