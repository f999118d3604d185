import { describe, expect, it } from 'vitest';
import type { SessionRecord } from '#shared/contracts/agent/session.ts';
import { completed, create, patch, post, remove } from './commands.ts';
import { eventually, type House } from './test-cluster.ts';

/** What becomes of a session that is changed, whatever its host stands on. */
export function patchCases(open: () => Promise<House>): void {
  const recordOf = async (house: House, id: string) =>
    (await house.rows<{ record: SessionRecord }>('select record from sessions where id = $1', [id]))[0]?.record ?? null;

  describe('a session that is changed', () => {
    it('is not there for what was never made or is deleted, and nothing comes of the change', async () => {
      const house = await open();
      await house.host();
      await house.send(patch('ses_b', 'early', { title: 'T' }));
      await house.send(create('ses_a'));
      await house.send(remove('ses_a'));
      await house.send(patch('ses_a', 'late', { title: 'T' }));
      await eventually(() => house.answers.length === 4);

      const refusals = house.answers.filter(({ commandId }) => ['early', 'late'].includes(commandId));
      expect(refusals.map(({ answer }) => answer)).toMatchObject(Array(2).fill({ ok: false, code: 'session.not_found' }));
      expect(await recordOf(house, 'ses_a')).toMatchObject({ title: null });
      expect(await recordOf(house, 'ses_b')).toBeNull();
    });

    it('stays as it is when it can not become what is wanted', async () => {
      const house = await open();
      await house.host();
      await house.send(create('ses_a'));
      await eventually(() => house.answers.length === 1);
      const before = await recordOf(house, 'ses_a');
      await house.send(patch('ses_a', 'ahead', { title: 'T', clientOffset: 1 }));
      await eventually(() => house.answers.length === 2);

      expect(house.answers[1]?.answer).toMatchObject({ ok: false, code: 'request.invalid' });
      expect(await recordOf(house, 'ses_a')).toEqual(before);
    });

    it('DESIGN 4: a change of a session is a command: stored and answered once, in its place among the others, and kept by the next owner', async () => {
      const house = await open();
      const first = await house.host();
      await house.send({ ...create('ses_a'), metadata: { plan: 'gold', region: 'eu' }, labels: ['open'] });
      await house.send({ ...post('ses_a', 'hello'), triggersTurn: false });
      const change = patch('ses_a', 'change', { title: 'Warranty', setMetadata: { plan: 'silver' }, unsetMetadata: ['region'], clientOffset: 0 });
      await house.send(change, 'first');
      await house.send(patch('ses_a', 'labels', { upsertLabels: ['vip'], removeLabels: ['open'] }));
      await house.send(change, 'second');
      await eventually(() => house.answers.length === 5);
      const changed = { title: 'Warranty', metadata: { plan: 'silver' }, labels: ['vip'], consumption_offsets: { client: 0 }, last_offset: 0, mode: 'auto' };

      const record = await recordOf(house, 'ses_a');
      expect(record).toMatchObject(changed);
      expect(Date.parse(record?.updated_at ?? '')).toBeGreaterThanOrEqual(Date.parse(record?.created_at ?? ''));
      const answers = house.answers.filter(({ commandId }) => commandId === 'change');
      expect(answers.map(({ repeat }) => repeat)).toEqual([false, true]);
      expect(answers[1]?.answer).toEqual(answers[0]?.answer);
      expect(answers[0]?.answer).toMatchObject({ ok: true, value: { session: { title: 'Warranty', labels: ['open'] } } });
      expect(house.answers.find(({ commandId }) => commandId === 'labels')?.answer).toEqual({ ok: true, value: { session: record } });

      await first.stop();
      await house.host();
      await house.send(patch('ses_a', 'title', { title: null }));
      await eventually(() => house.answers.length === 6);
      expect(await recordOf(house, 'ses_a')).toMatchObject({ ...changed, title: null });
    });

    it('keeps the turn in progress when it becomes a human’s; later messages follow its mode', async () => {
      const house = await open();
      await house.host();
      const next = house.nextCall();
      await house.send(create('ses_a'));
      await house.send(post('ses_a', 'one'));
      const { callId } = await next;
      await house.send(patch('ses_a', 'manual', { mode: 'manual' }));
      await house.send(post('ses_a', 'two'));
      await house.send(completed('ses_a', callId, 'a reply'));
      await eventually(async () => (await house.log('ses_a')).at(-1)?.kind === 'status' && (await house.count('effects', `state = 'open'`)) === 0);
      await eventually(() => house.answers.length === 4);

      expect((await house.log('ses_a')).flatMap((event) => ('text' in event ? [event.text] : []))).toEqual(['one', 'two', 'a reply']);
      expect((await house.log('ses_a')).at(-1)).toMatchObject({ status: 'ready' });
      expect(await house.count('effects')).toBe(1);

      const again = house.nextCall();
      await house.send(patch('ses_a', 'auto', { mode: 'auto' }));
      await house.send(post('ses_a', 'three'));
      expect((await again).request.messages.map(({ content }) => content)).toEqual([expect.anything(), 'one', 'two', 'a reply', 'three']);
    });
  });
}
