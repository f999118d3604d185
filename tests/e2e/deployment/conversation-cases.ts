import { beforeAll, describe, expect, it } from 'vitest';
import type { ConversationEvent } from '../../../shared/contracts/agent/conversation-event.ts';
import type { DeploymentUnderTest } from '../../helpers/deployment-under-test.ts';
import { nthReady, ONE_TURN, wordsOf } from '../../helpers/events-of-a-session.ts';
import { eventually } from '../../helpers/eventually.ts';
import { COALESCE_MS, type SharedDeployment } from './shared-deployment.ts';

export function conversationCases(shared: () => SharedDeployment): void {
  describe('a conversation with the sample agent', () => {
    let deployment: DeploymentUnderTest;
    let agent: DeploymentUnderTest['agent'];

    beforeAll(() => {
      ({ deployment } = shared());
      agent = deployment.agent;
    });

    it('goes over three messages by long-poll, each answered from the agent’s own documents', async () => {
      const session = await agent.createSession({ title: 'a question', metadata: { from: 'a test' } });
      expect(session).toMatchObject({ title: 'a question', metadata: { from: 'a test' }, last_offset: -1 });

      for (const [round, text] of ['How long is the warranty?', 'And how do I descale the machine?', 'Thank you!'].entries()) {
        await agent.postMessage(session.id, text);
        await agent.logUntil(session.id, nthReady(round + 1));
      }
      const log = await agent.poll(session.id);

      expect(log.map((event) => event.offset)).toEqual(log.map((_, index) => index));
      expect(wordsOf(log)).toBe(Array(3).fill(ONE_TURN).join(' '));
      expect(textsOf(log)[0]).toMatch(/2 years|two years|24 months/i);
      expect(await agent.readSession(session.id)).toMatchObject({ status: 'ready', last_offset: log.length - 1 });
    });

    it('cancels the turn for a second message, and answers the second', async () => {
      const { id } = await agent.createSession();
      await agent.postMessage(id, '!slow 200 How long is the warranty?');
      await longerThan(COALESCE_MS);
      await agent.postMessage(id, 'Forget it. How do I descale the machine?');
      const log = await agent.logUntil(id, nthReady(2));

      expect(wordsOf(log)).toMatch(new RegExp(`^user_message acknowledged processing (?:typing )?cancelled ready ${ONE_TURN}$`));
      expect(log.findLast(({ trace_id: id }) => id === log[0]?.trace_id)).toMatchObject({ kind: 'status', status: 'ready' });
    });

    it('switches to manual mode and back: the turn in progress ends, and messages meanwhile begin none', async () => {
      const { id } = await agent.createSession();
      await agent.postMessage(id, '!slow 20 How long is the warranty?');
      const changed = await agent.changeSession(id, { mode: 'manual', title: 'for a human', labels: { upsert: ['human'] }, metadata: { set: { team: 2 } } });
      await agent.logUntil(id, nthReady(1));
      await agent.postMessage(id, 'Is this still open?');
      expect(changed).toMatchObject({ mode: 'manual', title: 'for a human', labels: ['human'], metadata: { team: 2 } });

      await agent.changeSession(id, { mode: 'auto', consumption_offsets: { client: 5 } });
      await agent.postMessage(id, 'And how do I descale the machine?');
      const log = await agent.logUntil(id, nthReady(2));

      expect(wordsOf(log)).toBe(`${ONE_TURN} user_message ${ONE_TURN}`);
      expect(await agent.readSession(id)).toMatchObject({
        mode: 'auto',
        title: 'for a human',
        consumption_offsets: { client: 5 },
        last_offset: log.length - 1,
      });
    });

    it('answers two messages in one turn that come within the coalescing window', async () => {
      const { id } = await agent.createSession();
      await agent.postMessage(id, '!slow 100 How long is the warranty?');
      await agent.postMessage(id, 'And how do I descale the machine?');
      const log = await agent.logUntil(id, nthReady(1));

      expect(wordsOf(log)).toMatch(/^user_message acknowledged processing (?:typing user_message|user_message typing) assistant_message ready$/);
    });

    it('answers a repeated post as it answered the first', async () => {
      const { id } = await agent.createSession();
      const post = () =>
        fetch(`${deployment.nextAgentUrl()}/sessions/${id}/events`, {
          method: 'POST',
          headers: { authorization: `Bearer ${deployment.keys.agentKey}`, 'content-type': 'application/json', 'idempotency-key': 'once' },
          body: JSON.stringify({ kind: 'user_message', text: 'hello' }),
        });
      const [first, second] = [await post(), await post()];

      expect([first.status, second.status]).toEqual([201, 200]);
      expect(await second.json()).toEqual(await first.json());
    });

    it('ends a turn whose model fails as an error, with a code, then ready, and the next message is answered', async () => {
      const { id } = await agent.createSession();
      await agent.postMessage(id, '!fail 500');
      const log = await agent.logUntil(id, nthReady(1));
      expect(wordsOf(log)).toBe('user_message acknowledged processing typing error ready');
      expect(log[4]).toMatchObject({ error_detail: expect.stringMatching(/^engine_error: /) });

      await agent.postMessage(id, 'How long is the warranty?');
      expect(wordsOf(await agent.logUntil(id, nthReady(2)))).toMatch(/assistant_message ready$/);
    });

    it('has one trace, which is the caller’s, in the log of each process that works on a turn', async () => {
      const { id } = await agent.createSession();
      const traceId = 'c0ffee00c0ffee00c0ffee00c0ffee01';
      await agent.postMessage(id, 'How long is the warranty?', {}, { traceparent: `00-${traceId}-00f067aa0ba902b7-01` });
      const log = await agent.logUntil(id, nthReady(1));
      const steps = [
        ['agent-gateway', 'a command was accepted'],
        ['actor-host', 'a turn began'],
        ['router-worker', 'a router call has ended'],
        ['actor-host', 'a turn ended'],
      ];
      // The outputs of several processes arrive in any order.
      const logged = await eventually(() => {
        const lines = deployment.logLines().filter((line) => line.trace_id === traceId);
        return lines.some(({ msg }) => msg === 'a turn ended') && lines.some(({ msg }) => msg === 'a router call has ended') && lines;
      });

      expect(new Set(log.map((event) => event.trace_id))).toEqual(new Set([traceId]));
      // A turn makes several calls.
      expect([...new Set(logged.map(({ level, service, msg }) => `${level} ${service} ${msg}`))].sort()).toEqual(
        steps.map(([service, msg]) => `info ${deployment.cluster === null ? 'standalone' : service} ${msg}`).sort(),
      );
      // Ids, and no text of a message.
      expect(JSON.stringify(logged)).not.toContain('warranty');
    });

    it('gives a turn a trace of its own when the caller has none', async () => {
      const { id } = await agent.createSession();
      await agent.postMessage(id, 'How long is the warranty?');
      const log = await agent.logUntil(id, nthReady(1));
      const traceId = log[0]?.trace_id;
      const logged = await eventually(() => {
        const lines = deployment.logLines().filter((line) => line.trace_id === traceId);
        return new Set(lines.map(({ msg }) => msg)).size >= 4 && lines;
      });

      expect(traceId).toMatch(/^[0-9a-f]{32}$/);
      expect(new Set(log.map((event) => event.trace_id))).toEqual(new Set([traceId]));
      expect([...new Set(logged.map(({ msg }) => msg))].sort()).toEqual(['a command was accepted', 'a router call has ended', 'a turn began', 'a turn ended']);
    });

    it.each([
      ['no key', {}],
      ['another key', { authorization: 'Bearer wrong' }],
    ])('answers 401 to %s', async (_, headers) => {
      const response = await fetch(`${deployment.nextAgentUrl()}/sessions`, { method: 'POST', headers });

      expect(response.status).toBe(401);
      expect(await response.json()).toMatchObject({ code: 'unauthorized' });
    });

    it('answers its live and ready probes without a key', async () => {
      for (const path of ['/health', '/health/live', '/health/ready']) {
        const response = await fetch(`${deployment.nextAgentUrl()}${path}`);
        expect([response.status, await response.json()]).toEqual([200, { status: 'ok', service: 'agent-server' }]);
      }
    });
  });
}

export function streamedCases(shared: () => SharedDeployment): void {
  describe('a streamed conversation', () => {
    let deployment: DeploymentUnderTest;

    beforeAll(() => {
      ({ deployment } = shared());
    });

    it('goes over three messages by SSE, with deltas that add up to the message that follows them', async () => {
      const { agent } = deployment;
      const { id } = await agent.createSession();
      let last = '';
      const whole: boolean[] = [];
      for (const text of ['!slow 40 How long is the warranty?', '!slow 40 What does shipping cost?', '!slow 40 Goodbye!']) {
        // Connected before the message is posted, as a chat page would be.
        const isOver = ({ event, data }: { event: string | null; data: Record<string, unknown> }) => event === 'status' && data.status === 'ready';
        const following = await agent.openStream(id, isOver, last === '' ? {} : { 'last-event-id': last });
        await agent.postMessage(id, text);
        const frames = await following.frames;
        last = frames.at(-1)?.id ?? '';
        const message = frames.find(({ event }) => event === 'assistant_message');
        const deltas = frames.filter(({ event }) => event === 'delta');

        expect(frames.flatMap(({ event }) => (event === 'delta' ? [] : [event]))).toEqual([
          'user_message',
          ...['status', 'status', 'status'],
          'assistant_message',
          'status',
        ]);
        expect(deltas.length).toBeGreaterThan(2);
        const shown = deltas.map(({ data }) => data.text).join('');
        // On a busy machine the message, which has the whole text, may overtake the last deltas.
        expect(String(message?.data.text).startsWith(shown), `${shown} of ${message?.data.text}`).toBe(true);
        whole.push(shown === message?.data.text);
        expect(deltas.every(({ id, data }) => id === null && data.message_id === message?.data.id)).toBe(true);
        expect(deltas.map(({ data }) => data.seq)).toEqual(deltas.map((_, index) => index + 1));
      }
      expect(whole).toContain(true);
    });

    it('DESIGN 7: a reader that connects in the middle of a reply, at any gateway, gets its text so far and then the rest', async () => {
      const { agent } = deployment;
      const { id } = await agent.createSession();
      await agent.postMessage(id, '!slow 50 How long is the warranty?');
      await agent.streamUntil(id, ({ event, data }) => (event === 'delta' || event === 'snapshot') && Number(data.seq) >= 3);
      const frames = await agent.streamUntil(id, ({ event }) => event === 'assistant_message');
      const pieces = frames.filter(({ event }) => event === 'snapshot' || event === 'delta');

      expect(pieces[0]?.event).toBe('snapshot');
      expect(pieces.at(-1)?.event).toBe('delta');
      expect(pieces.reduce((text, { event, data }) => (event === 'snapshot' ? `${data.text}` : `${text}${data.text}`), '')).toBe(frames.at(-1)?.data.text);
    });
  });
}

/** A plain wait: a window of time is what is tested. */
function longerThan(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms + 50));
}

function textsOf(log: readonly ConversationEvent[]): string[] {
  return log.flatMap((event) => (event.kind === 'assistant_message' ? [event.text] : []));
}
