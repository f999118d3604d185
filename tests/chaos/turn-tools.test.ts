import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ConversationEvent } from '../../shared/contracts/agent/conversation-event.ts';
import { type AgentClient, agentClient } from '../helpers/agent-client.ts';
import { eventually } from '../helpers/eventually.ts';
import { type Cluster, startCluster } from '../helpers/start-cluster.ts';
import { openShopTools, type ShopTools, toolAgentFiles } from '../helpers/tool-agent.ts';

/** The death of a worker is noticed after 15 s. */
const TIMEOUT_MS = 90_000;

let tools: ShopTools;
let cluster: Cluster;
let agent: AgentClient;
/** The tools answer no call while it is set. */
let held: Promise<void> | null = null;

beforeAll(async () => {
  tools = await openShopTools(async () => held ?? undefined);
  cluster = await startCluster({
    roles: { 'agent-gateway': 1, 'actor-host': 1, 'router-gateway': 1, 'router-worker': 1, 'effect-worker': 1 },
    env: { ...(await toolAgentFiles(tools.port)), PLATFORM_PUBLIC_KEY: 'pk', PLATFORM_SECRET_KEY: 'sk', LOG_LEVEL: 'warn' },
  });
  agent = agentClient(() => cluster.agentUrls[0] ?? '', cluster.keys.agentKey);
  // The tool lists are read in the background: a turn before them has no tools.
  await eventually(async () => (await ended(await say('state of order A-0'))).some(({ kind }) => kind === 'tool'), { timeoutMs: TIMEOUT_MS });
});
afterAll(async () => {
  await cluster?.stop();
  await tools?.close();
});

/** @returns the session's id */
async function say(text: string): Promise<string> {
  const { id } = await agent.createSession({ allow_greeting: false });
  await agent.postMessage(id, text);
  return id;
}

const isReady = (event: ConversationEvent) => event.kind === 'status' && event.status === 'ready';
const ended = (id: string) => eventually(async () => logUntilReady(id), { timeoutMs: TIMEOUT_MS });

async function logUntilReady(id: string): Promise<ConversationEvent[] | null> {
  const log = await agent.poll(id, 0, '&limit=1000&wait_for_data=0');
  return log.some(isReady) ? log : null;
}

/** Begins a turn, and kills the effect worker while its tool answers. */
async function killedDuring(text: string, calls: readonly string[], order: string): Promise<string> {
  let answer = () => {};
  held = new Promise((resolve) => {
    answer = resolve;
  });
  const id = await say(text);
  await eventually(() => calls.includes(order), { timeoutMs: TIMEOUT_MS });
  const [worker] = cluster.running('effect-worker');
  worker?.signal('SIGKILL');
  await worker?.exited;
  held = null;
  answer();
  await cluster.add('effect-worker');
  return id;
}

const resultsIn = (log: readonly ConversationEvent[]) =>
  log.flatMap((event) => (event.kind === 'tool' ? event.tool_calls.map(({ result }) => result.data) : []));

it('rule 69: a worker that dies in a call that can not be made again: it is not, its outcome is unknown, and the turn answers', {
  timeout: 240_000,
}, async () => {
  const log = await ended(await killedDuring('I want a refund for A-21', tools.refunded, 'A-21'));
  expect(tools.refunded.filter((order) => order === 'A-21')).toHaveLength(1);
  expect(resultsIn(log)).toEqual([{ error: 'outcome_unknown' }]);
  expect(log.filter(isReady)).toHaveLength(1);
  expect(log.at(-2)?.kind).toBe('assistant_message');
});

it('rule 69: a worker that dies in a call that can be made again: another makes it', { timeout: 240_000 }, async () => {
  const log = await ended(await killedDuring('What is the state of my order A-22?', tools.stated, 'A-22'));
  expect(tools.stated.filter((order) => order === 'A-22').length).toBeGreaterThan(1);
  expect(resultsIn(log)).toEqual(['A-22 was sent']);
  expect(log.filter(isReady)).toHaveLength(1);
});

it('rule 69: a host that dies while a tool answers: the turn goes on at another, and nothing is called twice', { timeout: 240_000 }, async () => {
  let answer = () => {};
  held = new Promise((resolve) => {
    answer = resolve;
  });
  const id = await say('I want a refund for A-23');
  await eventually(() => tools.refunded.includes('A-23'), { timeoutMs: TIMEOUT_MS });
  const [host] = cluster.running('actor-host');
  host?.signal('SIGKILL');
  await host?.exited;
  await cluster.add('actor-host');
  held = null;
  answer();
  const log = await ended(id);
  expect(tools.refunded.filter((order) => order === 'A-23')).toHaveLength(1);
  expect(resultsIn(log)).toEqual(['A-23 was refunded']);
  expect(log.filter(isReady)).toHaveLength(1);
});
