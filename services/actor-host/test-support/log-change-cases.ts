import { describe, expect, it } from 'vitest';
import { type EventWork, eventWork } from '#bus/messages/event-delivery.ts';
import type { CommandOf } from '#bus/messages/session.ts';
import { calledTools, completed, create, deleteEvents, patchEvent, post } from './commands.ts';
import { nextItem, VERDICT } from './run-helpers.ts';
import { eventually, type TestCluster } from './test-cluster.ts';

const quiet = (sessionId: string, text: string): CommandOf<'message.post'> => ({ ...post(sessionId, text), triggersTurn: false });
const said = (call: { request: { messages: { content?: unknown }[] } }) => call.request.messages.slice(1).map(({ content }) => content);

/** Cases of changes to stored events, for any driver. */
export function logChangeCases(open: () => Promise<TestCluster>): void {
  const session = async () => {
    const cluster = await open();
    const host = await cluster.host();
    await cluster.send({ ...create('ses_a'), allowGreeting: false });
    return { cluster, host };
  };
  const replyTo = (cluster: TestCluster, commandId: string) => cluster.replies.filter((reply) => reply.commandId === commandId);
  const answered = async (cluster: TestCluster, command: CommandOf<'events.delete' | 'event.patch'>) => {
    await cluster.send(command);
    await eventually(() => replyTo(cluster, command.commandId).length > 0);
    return replyTo(cluster, command.commandId)[0];
  };

  describe('deleted events', () => {
    it('DESIGN 5: are in no prompt from then on, at this host and at the one that takes over, and their offsets are never used again', async () => {
      const { cluster, host } = await session();
      const first = cluster.nextCall();
      await cluster.send(post('ses_a', 'Where is my order?'));
      const { callId } = await first;
      await cluster.send(completed('ses_a', callId, 'On its way.'));
      await eventually(async () => (await cluster.log('ses_a')).length === 5);
      const second = cluster.nextCall();
      await cluster.send(post('ses_a', 'My password is hunter2.'));
      await cluster.send(completed('ses_a', (await second).callId, 'Do not send passwords.'));
      await eventually(async () => (await cluster.log('ses_a')).length === 10);

      expect(await answered(cluster, deleteEvents('ses_a', 'd1', 5))).toMatchObject({ answer: { ok: true } });
      const third = cluster.nextCall();
      await cluster.send(post('ses_a', 'And now?'));
      expect(said(await third)).toEqual(['Where is my order?', 'On its way.', 'And now?']);
      await cluster.send(completed('ses_a', (await third).callId, 'Still.'));
      await eventually(async () => (await cluster.log('ses_a')).at(-1)?.offset === 14);
      expect((await cluster.log('ses_a')).map(({ offset }) => offset)).toEqual([0, 1, 2, 3, 4, 10, 11, 12, 13, 14]);

      await host.stop();
      await cluster.host();
      const fourth = cluster.nextCall();
      await cluster.send(post('ses_a', 'Later?'));
      expect(said(await fourth)).toEqual(['Where is my order?', 'On its way.', 'And now?', 'Still.', 'Later?']);
    });

    it('DESIGN 5: are refused during a turn without force; with it the turn is cancelled, and late results change nothing', async () => {
      const { cluster } = await session();
      const first = cluster.nextCall();
      await cluster.send(post('ses_a', 'one'));
      const { callId } = await first;
      expect(await answered(cluster, deleteEvents('ses_a', 'd1', 0))).toMatchObject({ answer: { ok: false, code: 'request.conflict' } });
      expect(await answered(cluster, deleteEvents('ses_a', 'd2', 1, true))).toMatchObject({ answer: { code: 'request.invalid' } });

      const forced = deleteEvents('ses_a', 'd3', 0, true);
      expect(await answered(cluster, forced)).toMatchObject({ answer: { ok: true } });
      await cluster.send(completed('ses_a', callId, 'too late'));
      // Long after the window of the bus.
      await cluster.send(forced, 'again');
      await eventually(() => replyTo(cluster, forced.commandId).length === 2);
      expect(replyTo(cluster, forced.commandId)[1]).toMatchObject({ repeat: true, answer: { ok: true } });
      expect(await cluster.log('ses_a')).toMatchObject([
        { offset: 3, status: 'cancelled' },
        { offset: 4, status: 'ready' },
      ]);
      expect(await cluster.count('timers')).toBe(0);
    });

    it('are refused during a run, also with force', async () => {
      const { cluster } = await session();
      await cluster.send(quiet('ses_a', 'one'));
      const ofRun = cluster.nextCall();
      await cluster.startRun({ id: 'run_1', sessionId: 'ses_a', ephemeral: false });
      const { callId } = await ofRun;
      expect(await answered(cluster, deleteEvents('ses_a', 'd1', 0, true))).toMatchObject({ answer: { code: 'request.conflict' } });
      await cluster.send(calledTools('ses_a', callId, VERDICT));
      await eventually(async () => (await cluster.log('ses_a')).length === 4);
      expect(await answered(cluster, deleteEvents('ses_a', 'd2', 0))).toMatchObject({ answer: { ok: true } });
      expect(await cluster.log('ses_a')).toEqual([]);
    });

    it('are those before the command alone: what was sent after it stays, in one batch too', async () => {
      const { cluster } = await session();
      const commands = [quiet('ses_a', 'one'), deleteEvents('ses_a', 'd1', 0), quiet('ses_a', 'two'), quiet('ses_a', 'three')];
      await Promise.all(commands.map((command) => cluster.send(command)));
      await eventually(() => replyTo(cluster, commands[3]?.commandId ?? '').length === 1);
      expect(await cluster.log('ses_a')).toMatchObject([
        { offset: 1, text: 'two' },
        { offset: 2, text: 'three' },
      ]);
    });
  });

  describe('a patched event', () => {
    it('has its new metadata for all readers, after each patch of one batch', async () => {
      const { cluster } = await session();
      await cluster.send(quiet('ses_a', 'one'));
      await eventually(async () => (await cluster.log('ses_a')).length === 1);
      const [event] = await cluster.log('ses_a');
      const id = event?.id ?? '';
      const last = patchEvent('ses_a', 'p3', id, { c: 3 }, ['a']);
      await Promise.all([patchEvent('ses_a', 'p1', id, { a: 1 }), patchEvent('ses_a', 'p2', id, { b: 2 }), last].map((one) => cluster.send(one)));
      await eventually(() => replyTo(cluster, last.commandId).length === 1);

      expect(await cluster.log('ses_a')).toEqual([{ ...event, metadata: { b: 2, c: 3 } }]);
      expect(replyTo(cluster, last.commandId)).toMatchObject([{ answer: { value: { event: { ...event, metadata: { b: 2, c: 3 } } } } }]);
    });
  });

  it('an event webhook goes on behind deleted events', async () => {
    const cluster = await open();
    await cluster.host();
    const first = nextRound(cluster);
    await cluster.send({ ...create('ses_a'), allowGreeting: false, eventWebhookUrl: 'https://receiver.example/events' });
    await cluster.send(quiet('ses_a', 'one'));
    const round = await first;
    await answered(cluster, deleteEvents('ses_a', 'd1', 0));
    await cluster.send(quiet('ses_a', 'two'));
    await eventually(async () => (await cluster.log('ses_a')).length === 1);
    const second = nextRound(cluster);
    const about = { v: 1 as const, sessionId: 'ses_a', sentAtMs: 0, answerTo: null, traceparent: null, reason: null, retryAfterMs: null };
    await cluster.send({ ...about, type: 'event-webhook.reported', commandId: round.effectId, callId: round.effectId, outcome: 'posted', nextOffset: 1 });
    expect(await second).toMatchObject({ fromOffset: 1, toOffset: 2 });
  });
}

async function nextRound(cluster: TestCluster): Promise<EventWork> {
  return eventWork.parse(await nextItem(cluster, 'delivery'));
}
