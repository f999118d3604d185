import { describe, expect, it } from 'vitest';
import { type EventWork, eventWork } from '#bus/messages/event-delivery.ts';
import type { CommandOf } from '#bus/messages/session.ts';
import { calledTools, completed, create, post, remove } from './commands.ts';
import { HEADER, nextDelivery, nextItem, report, VERDICT } from './run-helpers.ts';
import { eventually, type TestCluster } from './test-cluster.ts';

const URL = 'https://receiver.example/events';
const deployment = { eventWebhooks: { deployment: { url: URL, kinds: null }, maxAttempts: 2 } };

/** Cases of event webhooks: one round at a time, a stored cursor, dead letters, and the end of the session. */
export function eventWebhookCases(open: () => Promise<TestCluster>): void {
  describe('event webhooks', () => {
    it('DESIGN 5: a session has one round of its event webhook at a time, and its report moves the cursor', async () => {
      const cluster = await open();
      await cluster.host();
      const first = nextRound(cluster);
      await cluster.send({ ...create('ses_1'), eventWebhookUrl: URL, allowGreeting: false });
      await cluster.send({ ...post('ses_1', 'one'), triggersTurn: false });
      const round = await first;
      expect(round).toMatchObject({ url: URL, kinds: null, fromOffset: 0, toOffset: 1, sessionId: 'ses_1' });
      await cluster.send({ ...post('ses_1', 'two'), triggersTurn: false });
      await cluster.send({ ...post('ses_1', 'three'), triggersTurn: false });
      await eventually(async () => (await cluster.log('ses_1')).length === 3);
      expect(await openRounds(cluster)).toBe(1);

      const second = nextRound(cluster);
      await cluster.send(reported(round, 'posted', 1));
      expect(await second).toMatchObject({ fromOffset: 1, toOffset: 3 });
      await cluster.send(reported(await second, 'posted', 3));
      await eventually(async () => (await openRounds(cluster)) === 0);
      expect(await cluster.count('timers')).toBe(0);
      expect(await cursorOf(cluster, 'ses_1')).toBe(3);
    });

    it('a session without an event webhook has no row of one', async () => {
      const cluster = await open();
      await cluster.host();
      await cluster.send(create('ses_1'));
      await cluster.send({ ...post('ses_1', 'one'), triggersTurn: false });
      await eventually(async () => (await cluster.log('ses_1')).length === 1);
      expect(await cluster.count('effects')).toBe(0);
      expect(await cluster.rows(`select snapshot ->> 'eventWebhook' as hook from sessions`)).toEqual([{ hook: null }]);
    });

    it('DESIGN 5: an event that fails at its last attempt is a dead letter, and the next follows', async () => {
      const cluster = await open();
      await cluster.host(deployment);
      const first = nextRound(cluster);
      await cluster.send(create('ses_1'));
      await cluster.send({ ...post('ses_1', 'one'), triggersTurn: false });
      const second = first.then((round) => {
        const next = nextRound(cluster);
        return cluster.send(reported(round, 'failed', 0)).then(() => next);
      });
      expect(await second).toMatchObject({ fromOffset: 0, attempts: 1 });
      await cluster.send({ ...post('ses_1', 'two'), triggersTurn: false });
      await eventually(async () => (await cluster.log('ses_1')).length === 2);
      const third = nextRound(cluster);
      await cluster.send(reported(await second, 'failed', 0));

      expect(await third).toMatchObject({ fromOffset: 1, toOffset: 2, attempts: 0 });
      const letters = await cluster.rows<{ id: string; body: string }>('select id, source, reason, body from dead_letters');
      expect(letters).toMatchObject([{ id: 'ses_1-event-0', source: 'event', reason: 'the receiver answered 503' }]);
      expect(JSON.parse(letters[0]?.body ?? '')).toMatchObject({ sessionId: 'ses_1', offset: 0, url: URL });
    });

    it('the failed replay of a dead event is a dead letter again', async () => {
      const cluster = await open();
      await cluster.host(deployment);
      await cluster.send(create('ses_1'));
      const first = nextRound(cluster);
      await cluster.send({ ...post('ses_1', 'one'), triggersTurn: false });
      const replayed = { ...(await first), effectId: 'ses_1-event-0-replay-1' };
      await cluster.send(reported(replayed, 'failed', 0));
      await cluster.send(reported({ ...replayed, effectId: 'ses_1-event-0-replay-2' }, 'posted', 1));
      await eventually(async () => (await cluster.count('seen')) === 4);

      expect(await cluster.rows('select id, source from dead_letters')).toEqual([{ id: 'ses_1-event-0', source: 'event' }]);
      expect(await cursorOf(cluster, 'ses_1')).toBe(0);
    });

    it('posts a dead event again by a command, once, beside the open round', async () => {
      const cluster = await open();
      await cluster.host(deployment);
      await cluster.send(create('ses_1'));
      const first = nextRound(cluster);
      await cluster.send({ ...post('ses_1', 'one'), triggersTurn: false });
      await first;
      const next = nextRound(cluster);
      await cluster.send(replay('ses_1', 'again', 0));
      await cluster.send(replay('ses_1', 'again', 0));
      const replayed = await next;
      expect(replayed).toMatchObject({ url: URL, kinds: null, fromOffset: 0, toOffset: 1, attempts: 0, bundleHash: 'b' });
      expect(replayed.effectId).toMatch(/^ses_1-event-0-replay-/);
      expect(await openRounds(cluster)).toBe(2);
      await cluster.send(reported(replayed, 'posted', 1));
      await eventually(async () => (await openRounds(cluster)) === 1);

      expect([await cluster.count('dead_letters'), await cluster.count('timers'), await cursorOf(cluster, 'ses_1')]).toEqual([0, 1, 0]);
    });

    it('an event whose replay fails, or is not reported, is a dead letter again', async () => {
      const cluster = await open();
      await cluster.host(deployment);
      await cluster.send(create('ses_1'));
      const first = nextRound(cluster);
      await cluster.send({ ...post('ses_1', 'one'), triggersTurn: false });
      await cluster.send(reported(await first, 'posted', 1));
      await eventually(async () => (await openRounds(cluster)) === 0);
      const failing = nextRound(cluster);
      await cluster.send(replay('ses_1', 'failing', 0));
      await cluster.send(reported(await failing, 'failed', 0));
      await eventually(async () => (await cluster.count('dead_letters')) === 1);
      const lost = nextRound(cluster);
      await cluster.send(replay('ses_1', 'lost', 0));
      await lost;
      const [timer] = await cluster.rows<{ command: CommandOf<'effect.overdue'> }>('select command from timers');
      // As the timer would send it two and a half minutes later.
      await cluster.send(timer?.command as CommandOf<'effect.overdue'>);
      await eventually(async () => (await cluster.count('dead_letters')) === 2);

      const letters = await cluster.rows('select id, source, reason from dead_letters order by reason');
      const same = { id: 'ses_1-event-0', source: 'event' };
      expect(letters).toEqual([
        { ...same, reason: 'its replay was not reported' },
        { ...same, reason: 'the receiver answered 503' },
      ]);
      expect([await openRounds(cluster), await cluster.count('timers'), await cursorOf(cluster, 'ses_1')]).toEqual([0, 0, 1]);
    });

    it('the replay of an event of a deleted session posts nothing', async () => {
      const cluster = await open();
      await cluster.host(deployment);
      await cluster.send(create('ses_1'));
      await cluster.send(remove('ses_1'));
      await cluster.send(replay('ses_1', 'again', 0));
      await eventually(async () => (await cluster.count('seen')) === 3);

      expect([await openRounds(cluster), await cluster.count('timers')]).toEqual([0, 0]);
    });

    it('the replay of an event that fails when its session was deleted meanwhile leaves no dead letter, and no effect', async () => {
      const cluster = await open();
      await cluster.host(deployment);
      await cluster.send(create('ses_1'));
      const first = nextRound(cluster);
      await cluster.send({ ...post('ses_1', 'one'), triggersTurn: false });
      await cluster.send(reported(await first, 'posted', 1));
      const next = nextRound(cluster);
      await cluster.send(replay('ses_1', 'again', 0));
      const replayed = await next;
      await cluster.send(remove('ses_1'));
      await cluster.send(reported(replayed, 'failed', 0));
      await eventually(async () => (await openRounds(cluster)) === 0);

      expect([await cluster.count('dead_letters'), await cluster.count('timers'), await cluster.count('events')]).toEqual([0, 0, 0]);
    });

    it('DESIGN 5: a report of events that is repeated, late or of no round moves nothing', async () => {
      const cluster = await open();
      await cluster.host();
      const first = nextRound(cluster);
      await cluster.send({ ...create('ses_1'), eventWebhookUrl: URL });
      await cluster.send({ ...post('ses_1', 'one'), triggersTurn: false });
      const round = await first;
      await cluster.send(reported({ ...round, effectId: 'evw_other' }, 'posted', 1));
      await cluster.send(reported(round, 'failed', 0));
      await cluster.send(reported({ ...round, effectId: 'evw_another' }, 'posted', 1), 'another');
      await eventually(async () => (await cluster.count('seen')) === 5);

      expect(await cursorOf(cluster, 'ses_1')).toBe(0);
    });

    it('DESIGN 6 rule 5: a round of events whose item was lost with its stream is superseded by its timer', async () => {
      const cluster = await open();
      await cluster.host();
      const first = nextRound(cluster);
      await cluster.send({ ...create('ses_1'), eventWebhookUrl: URL });
      await cluster.send({ ...post('ses_1', 'one'), triggersTurn: false });
      const lost = await first;
      const [timer] = await cluster.rows<{ command: CommandOf<'effect.overdue'> }>('select command from timers');
      expect(timer?.command).toMatchObject({ type: 'effect.overdue', callId: lost.effectId, kind: 'event-delivery' });
      const second = nextRound(cluster);
      // As the timer would send it two and a half minutes later.
      await cluster.send(timer?.command as CommandOf<'effect.overdue'>);

      expect(await second).toMatchObject({ fromOffset: 0, toOffset: 1 });
      expect(await cluster.rows('select state from effects where id = $1', [lost.effectId])).toEqual([{ state: 'superseded' }]);
    });

    it('is set later, from any past offset, and refused past the end of the log', async () => {
      const cluster = await open();
      await cluster.host();
      await cluster.send(create('ses_1'));
      await cluster.send({ ...post('ses_1', 'one'), triggersTurn: false });
      await cluster.send({ ...post('ses_1', 'two'), triggersTurn: false });
      const round = nextRound(cluster);
      await cluster.send(set('ses_1', 'set-1', 3));
      await cluster.send(set('ses_1', 'set-2', 1));
      expect(await round).toMatchObject({ fromOffset: 1, toOffset: 2, url: URL });
      await cluster.send(set('ses_none', 'set-3', 0));
      await eventually(() => cluster.replies.some(({ commandId }) => commandId === 'set-3'));

      const replyTo = (id: string) => cluster.replies.find(({ commandId }) => commandId === id)?.answer;
      expect(replyTo('set-1')).toMatchObject({ ok: false, code: 'request.invalid' });
      expect(replyTo('set-2')).toEqual({ ok: true, value: { event_webhook: { url: URL, from_offset: 1 } } });
      expect(replyTo('set-3')).toMatchObject({ ok: false, code: 'session.not_found' });
    });

    it('a deleted session has no round, and its late report changes nothing', async () => {
      const cluster = await open();
      await cluster.host();
      const first = nextRound(cluster);
      await cluster.send({ ...create('ses_1'), eventWebhookUrl: URL });
      await cluster.send({ ...post('ses_1', 'one'), triggersTurn: false });
      const round = await first;
      await cluster.send(remove('ses_1'));
      await cluster.send(reported(round, 'failed', 0));
      await eventually(async () => (await cluster.count('seen')) === 4);

      expect(await cluster.rows('select state from effects')).toEqual([{ state: 'superseded' }]);
      expect(await cluster.count('timers')).toBe(0);
    });

    it('DESIGN 5: an ephemeral session is deleted after its callback and its last event', async () => {
      const cluster = await open();
      await cluster.host(deployment);
      const next = cluster.nextCall();
      await cluster.startRun({ id: 'run_1', callbackUrl: null });
      await cluster.send(calledTools('ses_run', (await next).callId, VERDICT));
      const round = await nextRound(cluster);
      await eventually(async () => (await cluster.count('runs', `state = 'succeeded'`)) === 1);
      expect(await cluster.count('sessions', 'deleted_at is null')).toBe(1);

      await postedTo(cluster, round, (await cluster.log('ses_run')).length);
      await eventually(async () => (await cluster.count('sessions', 'deleted_at is not null')) === 1);
      expect(await openRounds(cluster)).toBe(0);
    });

    it('an ephemeral session whose events are posted waits for its callback', async () => {
      const cluster = await open();
      await cluster.host({ eventWebhooks: { deployment: { url: URL, kinds: ['tool'] }, maxAttempts: 2 } });
      const [next, delivery] = [cluster.nextCall(), nextDelivery(cluster)];
      await cluster.startRun({ id: 'run_1' });
      await cluster.send(calledTools('ses_run', (await next).callId, VERDICT));
      const { effectId } = await delivery;
      expect(await cluster.count('sessions', 'deleted_at is null')).toBe(1);
      await cluster.send(report(effectId, 'delivered', 1));
      await eventually(async () => (await cluster.count('sessions', 'deleted_at is not null')) === 1);
    });

    it('DESIGN 5: an ephemeral session with a turn at its end waits for the events of that turn, too', async () => {
      const cluster = await open();
      await cluster.host(deployment);
      const next = cluster.nextCall();
      await cluster.startRun({ id: 'run_1', callbackUrl: null });
      await cluster.send(calledTools('ses_run', (await next).callId, VERDICT));
      let round = await nextRound(cluster);
      await eventually(async () => (await cluster.count('runs', `state = 'succeeded'`)) === 1);
      const turn = cluster.nextCall();
      await cluster.send(post('ses_run', 'Thanks.'));
      const { callId } = await turn;
      await postedTo(cluster, round, (await cluster.log('ses_run')).length);
      await eventually(async () => (await openRounds(cluster)) === 0);
      const rest = nextRound(cluster);
      await cluster.send(completed('ses_run', callId, 'You are welcome.'));
      round = await rest;
      await eventually(async () => (await cluster.log('ses_run')).at(-1)?.offset === round.toOffset - 1);
      expect(await cluster.count('sessions', 'deleted_at is null')).toBe(1);
      await cluster.send(reported(round, 'posted', round.toOffset));
      await eventually(async () => (await cluster.count('sessions', 'deleted_at is not null')) === 1);
    });

    it('a sweep leaves a session whose events are being posted', async () => {
      const cluster = await open();
      await cluster.host();
      const first = nextRound(cluster);
      await cluster.send({ ...create('ses_1'), eventWebhookUrl: URL });
      await cluster.send({ ...post('ses_1', 'one'), triggersTurn: false });
      await cluster.send({ ...remove('ses_1'), unlessBusy: true });
      await cluster.send(reported(await first, 'posted', 1));
      await eventually(async () => (await openRounds(cluster)) === 0);
      expect(await cluster.count('sessions', 'deleted_at is null')).toBe(1);

      await cluster.send({ ...remove('ses_1'), commandId: 'later', unlessBusy: true });
      await eventually(async () => (await cluster.count('sessions', 'deleted_at is not null')) === 1);
    });

    it('DESIGN 5: a stop waits for rounds of events, and counts those that it leaves', async () => {
      const cluster = await open();
      const host = await cluster.host({ drainTimeoutMs: 50 });
      const first = nextRound(cluster);
      await cluster.send({ ...create('ses_1'), eventWebhookUrl: URL });
      await cluster.send({ ...post('ses_1', 'one'), triggersTurn: false });
      await first;
      await host.stop();
      const pending = cluster.warnings.filter(({ message }) => message.startsWith('callbacks and events are pending'));
      expect(pending.map(({ fields }) => fields)).toEqual([{ callbacks: 1, in_flight: 1, receivers: ['receiver.example'] }]);
    });

    it('another host goes on at the stored cursor', async () => {
      const cluster = await open();
      const host = await cluster.host();
      const first = nextRound(cluster);
      await cluster.send({ ...create('ses_1'), eventWebhookUrl: URL });
      await cluster.send({ ...post('ses_1', 'one'), triggersTurn: false });
      await cluster.send(reported(await first, 'posted', 1));
      await eventually(async () => (await openRounds(cluster)) === 0);
      await host.stop();
      await cluster.host();
      const second = nextRound(cluster);
      await cluster.send({ ...post('ses_1', 'two'), triggersTurn: false });

      expect(await second).toMatchObject({ fromOffset: 1, toOffset: 2 });
    });
  });
}

/** Reports rounds as posted, up to an offset. @returns the last */
async function postedTo(cluster: TestCluster, first: EventWork, offset: number): Promise<EventWork> {
  let round = first;
  while (round.toOffset < offset) {
    const rest = nextRound(cluster);
    await cluster.send(reported(round, 'posted', round.toOffset));
    round = await rest;
  }
  await cluster.send(reported(round, 'posted', offset));
  return round;
}

async function nextRound(cluster: TestCluster): Promise<EventWork> {
  return eventWork.parse(await nextItem(cluster, 'delivery'));
}

function openRounds(cluster: TestCluster): Promise<number> {
  return cluster.count('effects', `kind = 'event-delivery' and state = 'open'`);
}

async function cursorOf(cluster: TestCluster, sessionId: string): Promise<number | undefined> {
  const [row] = await cluster.rows<{ snapshot: { eventWebhook: { context: { cursor: number } } } }>('select snapshot from sessions where id = $1', [sessionId]);
  return row?.snapshot.eventWebhook.context.cursor;
}

function reported({ effectId, sessionId }: EventWork, outcome: 'posted' | 'failed', nextOffset: number): CommandOf<'event-webhook.reported'> {
  const reason = outcome === 'posted' ? null : 'the receiver answered 503';
  return { ...HEADER, type: 'event-webhook.reported', sessionId, commandId: effectId, callId: effectId, outcome, nextOffset, reason, retryAfterMs: null };
}

function replay(sessionId: string, commandId: string, offset: number): CommandOf<'event-webhook.replay'> {
  return { ...HEADER, v: 3, type: 'event-webhook.replay', sessionId, commandId, offset, url: URL, bundleHash: 'b' };
}

function set(sessionId: string, commandId: string, fromOffset: number): CommandOf<'event-webhook.set'> {
  return { ...HEADER, answerTo: 'gw1', type: 'event-webhook.set', sessionId, commandId, url: URL, fromOffset, bundleHash: 'b' };
}
