import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AgentClient, createAgentClient } from '../../client/agent-client.ts';
import type { AgentEvent } from '../../client/api.ts';
import type { FollowItem } from '../../client/follow-item.ts';
import { asCluster, type DeploymentUnderTest, type Shape, shapes } from '../helpers/deployment-under-test.ts';
import { tcpProxy } from '../helpers/tcp-proxy.ts';
import { casesOfToday } from '../helpers/tier.ts';

const TWO_GATEWAYS = { 'router-gateway': 0, 'agent-gateway': 2, 'actor-host': 1, 'router-worker': 1, 'effect-worker': 1 };
const SOON = { retryMs: 10, maxRetryMs: 200 };
/** A reply of some hundred words, ten of which come within a second or less. */
const LONG = '!slow 40 How long is the warranty?';

type Fetch = typeof globalThis.fetch;

const isReady = (item: FollowItem) => item.type === 'event' && item.event.kind === 'status' && item.event.status === 'ready';
const eventsOf = (items: readonly FollowItem[]) => items.flatMap((item) => (item.type === 'event' ? [item.event] : []));

/** Follows until the agent has been ready so many times. */
async function followed(items: AsyncIterable<FollowItem>, times: number, onItem: (item: FollowItem) => void = () => {}): Promise<FollowItem[]> {
  const all: FollowItem[] = [];
  for await (const item of items) {
    all.push(item);
    onItem(item);
    if (all.filter(isReady).length === times) break;
  }
  return all;
}

/** What a page would show: the text of the replies in generation, by their message. */
function shownText(items: readonly FollowItem[]): Map<string, string> {
  const texts = new Map<string, string>();
  for (const item of items) {
    if (item.type === 'delta') texts.set(item.messageId, (texts.get(item.messageId) ?? '') + item.text);
    if (item.type === 'snapshot') texts.set(item.messageId, item.text);
    if (item.type === 'reply-cancelled') texts.delete(item.messageId);
  }
  return texts;
}

describe.each(casesOfToday(shapes))('the client, with Switchyard $name', ({ start }: Shape) => {
  let deployment: DeploymentUnderTest;
  beforeAll(async () => {
    deployment = await start({ STREAMING: 'true', COALESCE_MS: '50' }, TWO_GATEWAYS);
  });
  afterAll(() => deployment.stop());

  /** Each request goes to the next gateway. */
  const anyGateway: Fetch = (input, init) => fetch(String(input).replace('http://agent.test', deployment.nextAgentUrl()), init);
  const clientOver = (through: Fetch = anyGateway, apiKey: string | undefined = deployment.keys.agentKey): AgentClient =>
    createAgentClient({ baseUrl: 'http://agent.test', apiKey, fetch: through, timings: SOON });

  it('makes, reads, lists, changes and deletes sessions', async () => {
    const client = clientOver();
    const { id } = await client.sessions.create({ title: 'a question', labels: ['by the client'] });

    expect(await client.sessions.get(id)).toMatchObject({ id, title: 'a question' });
    expect((await client.sessions.list({ label: 'by the client', limit: 5 })).items.map((session) => session.id)).toEqual([id]);
    expect(await client.sessions.change(id, { title: 'changed' })).toMatchObject({ title: 'changed' });
    await client.sessions.delete(id);
    await expect(client.sessions.get(id)).rejects.toMatchObject({ status: 404, code: 'not_found' });
  });

  it('names what is wrong with a request, a key and an address', async () => {
    await expect(clientOver().messages.send('ses_nowhere', 'Hello')).rejects.toMatchObject({ status: 404 });
    await expect(clientOver().sessions.create({ title: 'x'.repeat(501) })).rejects.toMatchObject({ status: 400, path: '/title' });
    await expect(clientOver(anyGateway, 'wrong').sessions.list()).rejects.toMatchObject({ status: 401, code: 'unauthorized' });
    await expect(followed(clientOver().events.follow('ses_nowhere'), 1)).rejects.toMatchObject({ status: 404 });
  });

  it('shows a reply while it is written: its pieces are the message', async () => {
    const client = clientOver();
    const { id } = await client.sessions.create();
    await client.messages.send(id, LONG);

    const items = await followed(client.events.follow(id), 1);

    const [reply] = eventsOf(items).filter(({ kind }) => kind === 'assistant_message');
    expect(reply).toMatchObject({ text: shownText(items).get(reply?.id ?? '') });
    expect(items.filter(({ type }) => type === 'delta').length).toBeGreaterThan(5);
    expect(eventsOf(items)).toEqual(await client.events.list(id));
  });

  it('gives each event once, and the whole text of a reply, over streams that break all the time', async () => {
    let streams = 0;
    const breaking: Fetch = async (input, init) => {
      const response = await anyGateway(input, init);
      if (!response.headers.get('content-type')?.startsWith('text/event-stream') || response.body === null) return response;
      streams += 1;
      return new Response(brokenAfter(response.body, 4), response);
    };
    const client = clientOver(breaking);
    const { id } = await client.sessions.create();
    await client.messages.send(id, LONG);
    const items = await followed(client.events.follow(id), 1);
    await client.messages.send(id, 'And how do I descale the machine?');
    const last = eventsOf(items).at(-1)?.offset ?? -1;
    const more = await followed(client.events.follow(id, { after: last }), 1);

    expect([...eventsOf(items), ...eventsOf(more)]).toEqual(await client.events.list(id));
    expect(streams).toBeGreaterThan(5);
    const [reply] = eventsOf(items).filter(({ kind }) => kind === 'assistant_message');
    const shown = shownText(items).get(reply?.id ?? '') ?? '';
    expect(reply).toMatchObject({ text: expect.stringContaining(shown) });
    expect(shown).not.toBe('');
  });

  it('sends a message once, though every second answer is lost', async () => {
    let requests = 0;
    const losing: Fetch = async (input, init) => {
      requests += 1;
      const response = await anyGateway(input, init);
      if (init?.method !== 'POST' || requests % 2 === 0) return response;
      await response.text();
      throw new TypeError('fetch failed');
    };
    const client = clientOver(losing);
    const { id } = await client.sessions.create();
    const sent = [];
    for (const text of ['one', 'two', 'three']) sent.push(await client.messages.send(id, text));
    const log = await client.events.list(id);

    const texts = log.flatMap((event) => (event.kind === 'user_message' ? [event.text] : []));
    expect(texts).toEqual(['one', 'two', 'three']);
    expect(sent.map(({ event }) => event?.id)).toEqual(log.filter(({ kind }) => kind === 'user_message').map((event) => event.id));
    expect(sent.some(({ isRepeat }) => isRepeat)).toBe(true);
  });

  it('connects anew when its connection is dead and does not say so', async () => {
    const proxy = await tcpProxy(Number(new URL(deployment.nextAgentUrl()).port));
    try {
      const over: Fetch = (input, init) => fetch(String(input).replace('http://agent.test', `http://127.0.0.1:${proxy.port}`), init);
      const client = createAgentClient({ baseUrl: 'http://agent.test', apiKey: deployment.keys.agentKey, fetch: over, timings: { ...SOON, silenceMs: 1_000 } });
      const direct = clientOver();
      const { id } = await direct.sessions.create();
      let isFirst = true;
      const items = await followed(client.events.follow(id), 1, (item) => {
        if (item.type !== 'connection') return;
        if (item.state === 'waiting') proxy.thaw();
        if (item.state !== 'open' || !isFirst) return;
        isFirst = false;
        proxy.freeze();
        void direct.messages.send(id, 'How long is the warranty?');
      });

      expect(items).toContainEqual(expect.objectContaining({ state: 'waiting', error: expect.objectContaining({ code: 'client.timeout' }) }));
      expect(eventsOf(items)).toEqual(await direct.events.list(id));
    } finally {
      await proxy.close();
    }
  });

  it('reads by polls where no stream comes through', async () => {
    const withoutStreams: Fetch = (input, init) => {
      const headers = new Headers(init?.headers);
      if (headers.get('accept') === 'text/event-stream') headers.set('accept', 'application/json');
      return anyGateway(input, { ...init, headers });
    };
    const client = clientOver(withoutStreams);
    const { id } = await client.sessions.create();
    await client.messages.send(id, 'How long is the warranty?');

    const items = await followed(client.events.follow(id), 1);

    expect(items).toContainEqual(expect.objectContaining({ state: 'open', transport: 'polling' }));
    expect(eventsOf(items)).toEqual(await client.events.list(id));
  });

  it('works with the cookie of a login, as in a page of the server', async () => {
    const url = deployment.nextAgentUrl();
    const login = await fetch(`${url}/auth/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ key: deployment.keys.agentKey }),
    });
    const cookie = login.headers.get('set-cookie')?.split(';')[0] ?? '';
    const page: Fetch = (input, init) => fetch(input, { ...init, headers: { ...Object.fromEntries(new Headers(init?.headers)), cookie, origin: url } });
    const client = createAgentClient({ baseUrl: url, fetch: page });

    const { id } = await client.sessions.create();
    await client.messages.send(id, 'How long is the warranty?');

    expect(eventsOf(await followed(client.events.follow(id), 1))).toEqual(await client.events.list(id));
  });

  it('makes any other operation, with the input and the result of the contract', async () => {
    const client = clientOver();
    const { id } = await client.sessions.create();
    await client.messages.send(id, 'How long is the warranty?');
    await followed(client.events.follow(id), 1);

    const { items } = await client.request('GET', '/sessions/{session_id}/turns', { path: { session_id: id }, query: { limit: 1 } });
    const { items: routines } = await client.request('GET', '/journeys');

    expect(items).toHaveLength(1);
    expect(routines.length).toBeGreaterThan(0);
  });
});

describe('the client, while gateways are killed', () => {
  it('gives each event once and ends no conversation', async () => {
    const deployment = await asCluster.start({ STREAMING: 'true', COALESCE_MS: '50' }, TWO_GATEWAYS);
    const { cluster } = deployment;
    if (cluster === null) throw new Error('expected a cluster');
    try {
      // A balancer's answer while the only gateway begins: the request goes to one that does not listen any more.
      const balanced: Fetch = (input, init) => fetch(String(input).replace('http://agent.test', deployment.nextAgentUrl()), init);
      const client = createAgentClient({ baseUrl: 'http://agent.test', apiKey: deployment.keys.agentKey, fetch: balanced, timings: SOON });
      const { id } = await client.sessions.create();
      const events: AgentEvent[] = [];
      for (let round = 0; round < 3; round += 1) {
        await client.messages.send(id, LONG);
        let isKilled = false;
        const items = await followed(client.events.follow(id, { after: events.at(-1)?.offset ?? -1 }), 1, (item) => {
          if (item.type !== 'delta' || isKilled) return;
          isKilled = true;
          cluster.running('agent-gateway')[0]?.signal('SIGKILL');
        });
        events.push(...eventsOf(items));
        await cluster.add('agent-gateway');
      }

      expect(events).toEqual(await client.events.list(id));
      expect(events.filter(({ kind }) => kind === 'user_message')).toHaveLength(3);
    } finally {
      await cluster.stop();
    }
  });
});

/** Breaks off after some chunks, as a proxy that restarts. */
function brokenAfter(body: ReadableStream<Uint8Array>, chunks: number): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let read = 0;
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) return controller.close();
      controller.enqueue(value);
      read += 1;
      if (read < chunks) return;
      await reader.cancel();
      controller.error(new TypeError('terminated'));
    },
    cancel: (reason) => reader.cancel(reason),
  });
}
