import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { get, post } from '../../services/router-gateway/test-support/http-client.ts';
import type { ConversationEvent } from '../../shared/contracts/agent/conversation-event.ts';
import { agentClient } from '../helpers/agent-client.ts';
import { eventually } from '../helpers/eventually.ts';
import { readStream } from '../helpers/read-stream.ts';
import { openScriptedProviders, plannedCall, plannedRequests, requestFor, type ScriptedProviders } from '../helpers/scripted-deployment.ts';
import { type Cluster, startCluster } from '../helpers/start-cluster.ts';
import type { Plan, Step } from '../upstreams/scripted-upstream.ts';

const TIMEOUT = { timeoutMs: 90_000 };
const ROLES = { 'router-gateway': 0, 'agent-gateway': 0, 'actor-host': 0, 'router-worker': 0, 'effect-worker': 0, router: 1, agent: 2 };
/** More than one partition of each of two hosts, as good as certainly. */
const SESSIONS = 12;
const ended: Step[] = ['finish', 'usage', 'done', 'end'];

let providers: ScriptedProviders;
let cluster: Cluster;

beforeAll(async () => {
  providers = await openScriptedProviders();
  cluster = await startCluster({ roles: ROLES, env: { ...providers.settings, LOG_LEVEL: 'info', STREAMING: 'true' } });
});

afterAll(async () => {
  await cluster?.stop();
  await providers.close();
});

const authorization = () => `Bearer ${cluster.keys.routerKey}`;

function ask(url: string, plan: Plan, { stream = true, headers = {} }: { stream?: boolean; headers?: Record<string, string> } = {}) {
  const client = post(`${url}/api/v1/chat/completions`, requestFor(plan, 'first', stream), { authorization: authorization(), ...headers });
  client.answer.catch(() => {});
  return client;
}

/** Rows of the ledger for a call, once there is one. */
async function rowsOf(generationId: string): Promise<number> {
  const client = new pg.Client({ connectionString: cluster.postgres.url });
  await client.connect();
  try {
    const count = async () =>
      Number((await client.query<{ count: string }>('select count(*) from usage_ledger where generation_id = $1', [generationId])).rows[0]?.count);
    await eventually(async () => (await count()) > 0, TIMEOUT);
    return await count();
  } finally {
    await client.end();
  }
}

describe('router', () => {
  it('answers streams, whole responses and detached calls, each with one usage record, and is ready with its stores', async () => {
    const [router] = cluster.running('router');
    const url = router?.url ?? '';
    const plan = () => plannedCall({ first: [{ say: 'word', times: 5 }, ...ended] });
    const [stream, whole, detached] = await Promise.all([
      ask(url, plan()).answer,
      ask(url, plan(), { stream: false }).answer,
      ask(url, plan(), { headers: { 'x-detach': 'true' } }).answer,
    ]);
    expect(await Promise.all([stream, whole, detached].map((answer) => answer.ended))).toEqual([true, true, true]);

    for (const answer of [stream, detached]) expect(readStream(answer.text)).toMatchObject({ text: 'word0 word1 word2 word3 word4 ' });
    expect(whole.text).toContain('word0 word1 word2 word3 word4 ');
    for (const answer of [stream, whole, detached]) expect(await rowsOf(String(answer.headers['x-generation-id']))).toBe(1);
    const ready = await fetch(`${router?.managementUrl}/ready`);
    expect([ready.status, ((await ready.json()) as { checks: object }).checks]).toEqual([200, { bus: 'ok', database: 'ok', cache: 'ok' }]);
  });

  it('DESIGN 7: killed with its calls: a stream that was shown ends with an error at another process, a queued call of which nothing was shown is made again', async () => {
    const [killed] = cluster.running('router');
    const shown = ask(killed?.url ?? '', plannedCall({ first: [{ say: 'word', times: 3 }, 'hold'] }));
    const answer = await shown.answer;
    await eventually(() => answer.text.includes('word2'), TIMEOUT);
    const again: Step[] = [{ say: 'word', times: 5 }, ...ended];
    const unshownPlan = plannedRequests({ first: [['headers', 'hold'], again] });
    const unshown = ask(killed?.url ?? '', unshownPlan, { headers: { 'x-detach': 'true' } });
    // Nothing else could have it.
    await eventually(() => providers.upstream.calls(unshownPlan.name).length === 1, TIMEOUT);
    killed?.signal('SIGKILL');
    await killed?.exited;
    const elsewhere = await cluster.add('router');

    expect(await answer.ended).toBe(false);
    await expect(unshown.answer).rejects.toThrow();
    const callId = String(answer.headers['x-generation-id']);
    const whole = await get(`${elsewhere.url}/api/v1/generations/${callId}/stream`, { authorization: authorization() });
    expect([whole.status, await whole.ended]).toEqual([200, true]);
    const { text, ends, behindEnd } = readStream(whole.text);
    expect({ ends, behindEnd }).toEqual({ ends: [502], behindEnd: 0 });
    // The last half second was not retained yet.
    expect(text).toMatch(/^word0 /);
    expect('word0 word1 word2 '.startsWith(text)).toBe(true);
    await eventually(() => providers.upstream.calls(unshownPlan.name).some(({ said }) => said === 5), TIMEOUT);
  });
});

describe('agent', () => {
  const clientOf = (url: string | null | undefined) => agentClient(url ?? '', cluster.keys.agentKey);
  const words = (log: ConversationEvent[]) => log.map((event) => (event.kind === 'status' ? event.status : event.kind)).join(' ');
  const TURN = 'user_message acknowledged processing typing assistant_message ready';

  it('answers at either process, with deltas to those that follow the session, and is ready with its stores', async () => {
    const [one, other] = cluster.running('agent');
    const { id } = await clientOf(one?.url).createSession();
    const following = await Promise.all(
      [one, other].map((process) => clientOf(process?.url).openStream(id, ({ event, data }) => event !== 'delta' && data['status'] === 'ready')),
    );
    await clientOf(other?.url).postMessage(id, 'How long is the warranty?');
    const frames = await Promise.all(following.map((stream) => stream.frames));

    const logs = await Promise.all([one, other].map((process) => clientOf(process?.url).poll(id)));
    for (const log of logs) expect([words(log), log.map(({ offset }) => offset)]).toEqual([TURN, [0, 1, 2, 3, 4, 5]]);
    for (const seen of frames) expect(seen.filter(({ event }) => event === 'delta').length).toBeGreaterThan(0);
    for (const { managementUrl } of cluster.running('agent')) {
      const ready = await fetch(`${managementUrl}/ready`);
      expect([ready.status, ((await ready.json()) as { checks: object }).checks]).toEqual([200, { bus: 'ok', database: 'ok', cache: 'ok' }]);
    }
  });

  it('DESIGN 4: killed in the middle of turns: each goes on in the other process, and is in its log once', async () => {
    const [killed, left] = cluster.running('agent');
    const sessions = await Promise.all(
      Array.from({ length: SESSIONS }, async () => {
        const { id } = await clientOf(killed?.url).createSession();
        await clientOf(killed?.url).postMessage(id, '!slow 150 How long is the warranty?');
        return id;
      }),
    );
    await Promise.all(sessions.map((id) => clientOf(killed?.url).logUntil(id, (event) => event.kind === 'status' && event.status === 'processing')));
    killed?.signal('SIGKILL');
    await killed?.exited;

    const log = (id: string) => clientOf(left?.url).poll(id, 0, '&wait_for_data=0');
    for (const id of sessions) await eventually(async () => words(await log(id)).endsWith('ready'), TIMEOUT);
    for (const id of sessions) expect(words(await log(id))).toBe(TURN);
  });

  it('stops within its drain: the turn in progress goes on in the next process', async () => {
    const [stopped] = cluster.running('agent');
    const next = await cluster.add('agent');
    const { id } = await clientOf(next.url).createSession();
    await clientOf(next.url).postMessage(id, '!slow 150 How long is the warranty?');
    stopped?.signal('SIGTERM');

    expect(await stopped?.exited).toEqual({ code: 0, signal: null });
    await eventually(async () => words(await clientOf(next.url).poll(id, 0, '&wait_for_data=0')).endsWith('ready'), TIMEOUT);
    expect(words(await clientOf(next.url).poll(id, 0, '&wait_for_data=0'))).toBe(TURN);
  });
});
