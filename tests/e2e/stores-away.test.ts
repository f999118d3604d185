import { beforeAll, describe, expect, it } from 'vitest';
import { type AgentClient, agentClient } from '../helpers/agent-client.ts';
import { eventually } from '../helpers/eventually.ts';
import { type Cluster, startCluster } from '../helpers/start-cluster.ts';

/** Drivers try to reconnect every second or so, and owners read again what they own. */
const TIMEOUT_MS = 60_000;

let cluster: Cluster;
let agent: AgentClient;

beforeAll(async () => {
  cluster = await startCluster({ env: { LOG_LEVEL: 'info' } });
  agent = agentClient(cluster.agentUrls[0] ?? '', cluster.keys.agentKey);
});

async function readinessOf(role: Parameters<Cluster['running']>[0]): Promise<{ code: number; checks: Record<string, string> }> {
  const [one] = cluster.running(role);
  return readinessAt(one?.managementUrl ?? '');
}

async function readinessAt(managementUrl: string): Promise<{ code: number; checks: Record<string, string> }> {
  const response = await fetch(`${managementUrl}/ready`);
  const { checks } = (await response.json()) as { checks: Record<string, string> };
  return { code: response.status, checks };
}

async function answersAMessage(at: AgentClient = agent): Promise<void> {
  const { id } = await at.createSession();
  await at.postMessage(id, 'How long is the warranty?');
  await at.logUntil(id, (event) => event.kind === 'assistant_message');
}

async function completes(): Promise<number> {
  const response = await fetch(`${cluster.routerUrls[0]}/api/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${cluster.keys.routerKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ messages: [{ role: 'user', content: 'Hello!' }] }),
  });
  await response.text();
  return response.status;
}

/** No process ends because a store is away. */
function allRun(): void {
  expect(cluster.processes.filter((one) => one.hasExited()).map(({ role }) => role)).toEqual([]);
}

describe('without PostgreSQL', () => {
  it('DESIGN 3: without the database nothing is accepted that can not be kept, and all goes on by itself where a turn was when it is back', async () => {
    const { id } = await agent.createSession();
    await agent.postMessage(id, '!slow 100 How long is the warranty?');
    await cluster.postgres.kill();

    for (const role of ['agent-gateway', 'actor-host', 'effect-worker', 'router-worker'] as const) {
      await eventually(async () => (await readinessOf(role)).code === 503, { timeoutMs: TIMEOUT_MS });
      expect((await readinessOf(role)).checks).toMatchObject({ bus: 'ok', database: 'unavailable' });
    }
    expect((await fetch(`${cluster.agentUrls[0]}/health/ready`)).status).toBe(503);
    expect((await readinessOf('router-gateway')).code).toBe(200);
    allRun();

    await cluster.postgres.start();
    for (const role of ['agent-gateway', 'actor-host', 'effect-worker', 'router-worker'] as const) {
      await eventually(async () => (await readinessOf(role)).code === 200, { timeoutMs: TIMEOUT_MS });
    }
    const log = await agent.logUntil(id, (event) => event.kind === 'status' && event.status === 'ready');
    expect(log.filter(({ kind }) => kind === 'assistant_message')).toHaveLength(1);
    await answersAMessage();
    allRun();
  });
});

describe('without NATS', () => {
  it('DESIGN 3: without the broker nothing is ready, and all goes on by itself where a turn was when it is back', async () => {
    const { id } = await agent.createSession();
    await agent.postMessage(id, '!slow 100 How long is the warranty?');
    await agent.logUntil(id, (event) => event.kind === 'status' && event.status === 'typing');
    await cluster.nats.kill();
    for (const role of ['router-gateway', 'agent-gateway', 'actor-host', 'router-worker', 'effect-worker'] as const) {
      await eventually(async () => (await readinessOf(role)).code === 503, { timeoutMs: TIMEOUT_MS });
      expect((await readinessOf(role)).checks).toMatchObject({ bus: 'unavailable' });
    }
    expect((await fetch(`${cluster.routerUrls[0]}/health/ready`)).status).toBe(503);
    allRun();

    await cluster.nats.start();
    for (const role of ['router-gateway', 'agent-gateway', 'actor-host', 'router-worker', 'effect-worker'] as const) {
      await eventually(async () => (await readinessOf(role)).code === 200, { timeoutMs: TIMEOUT_MS });
    }
    const log = await agent.logUntil(id, (event) => event.kind === 'status' && event.status === 'ready');
    expect(log.filter(({ kind }) => kind === 'assistant_message')).toHaveLength(1);
    await answersAMessage();
    expect(await completes()).toBe(200);
    allRun();
  });
});

describe('without Redis', () => {
  it('DESIGN 3: without the cache all stays ready and answers, a gateway starts, it is said that the cache is away, and all have it again when it is back', async () => {
    await cluster.redis.kill();
    await eventually(async () => (await readinessOf('agent-gateway')).checks.cache === 'unavailable', { timeoutMs: TIMEOUT_MS });
    expect((await readinessOf('agent-gateway')).code).toBe(200);
    await answersAMessage();
    expect(await completes()).toBe(200);
    const late = await cluster.add('agent-gateway');
    expect((await readinessAt(late.managementUrl)).checks).toEqual({ bus: 'ok', database: 'ok', cache: 'unavailable' });
    await answersAMessage(agentClient(late.url ?? '', cluster.keys.agentKey));
    allRun();

    await cluster.redis.start();
    await eventually(async () => (await readinessAt(late.managementUrl)).checks.cache === 'ok', { timeoutMs: TIMEOUT_MS });
    await eventually(async () => (await readinessOf('agent-gateway')).checks.cache === 'ok', { timeoutMs: TIMEOUT_MS });
    await answersAMessage();
    allRun();
  });
});
