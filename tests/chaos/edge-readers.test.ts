import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { agentClient } from '../helpers/agent-client.ts';
import { eventually } from '../helpers/eventually.ts';
import { type Cluster, startCluster } from '../helpers/start-cluster.ts';
import { casesOfToday } from '../helpers/tier.ts';
import { heldBy } from './edge-memory.ts';
import { type EventReader, followEvents } from './edge-reader.ts';

/** More with EDGE_READERS, such as 1,000. */
const READERS = Number(process.env.EDGE_READERS ?? 300);
/** Readers of one session: two windows of one customer. */
const READERS_PER_SESSION = 2;
const AT_ONCE = 32;
const TIMEOUT_MS = 60_000;
/** A reconnecting reader costs one statement; what hosts and posts execute meanwhile is far less. */
const MOST_STATEMENTS_PER_READER = 3;
/** Of a gateway's memory: buffers of the socket, the request and the response. */
const MOST_KIB_PER_READER = 200;

type Gateway = ReturnType<Cluster['running']>[number];
let cluster: Cluster;
let database: pg.Pool;
let sessions: string[];
let readers: { sessionId: string; reader: EventReader }[];
let door: Gateway;
let posted = 0;

beforeAll(async () => {
  const roles = { 'router-gateway': 0, 'agent-gateway': 2, 'actor-host': 1, 'router-worker': 0, 'effect-worker': 0 };
  cluster = await startCluster({ roles, env: { LOG_LEVEL: 'warn' } });
  database = new pg.Pool({ connectionString: cluster.postgres.url, max: 1 });
  database.on('error', () => {});
  door = gateway(0);
  const agent = agentClient(() => door.url ?? '', cluster.keys.agentKey);
  sessions = [];
  await inTurn(Array.from({ length: Math.ceil(READERS / READERS_PER_SESSION) }), async () => {
    sessions.push((await agent.createSession()).id);
  });
  readers = sessions.flatMap((sessionId) =>
    Array.from({ length: READERS_PER_SESSION }, () => ({
      sessionId,
      reader: followEvents(() => `${door.url}/sessions/${sessionId}/events`, cluster.keys.agentKey),
    })),
  );
  await eventually(() => readers.every(({ reader }) => reader.isOpen), { timeoutMs: TIMEOUT_MS });
});
afterAll(async () => {
  for (const { reader } of readers) reader.leave();
  await database.end();
  await cluster.stop();
});

describe(`${READERS} idle readers of a gateway`, () => {
  const ends = casesOfToday([
    ['stopped', 'SIGTERM'],
    ['killed', 'SIGKILL'],
  ] as const);
  it.each(ends)('reconnect to another gateway when theirs is %s, without a missed or a repeated event', async (_, signal) => {
    if (cluster.running('agent-gateway').length === 1) await cluster.add('agent-gateway');
    await loseDoor(signal);
  });
});

async function loseDoor(signal: NodeJS.Signals): Promise<void> {
  const lost = door;
  await postToAll();
  await allHave(posted);
  const heldMib = heldBy(lost.pid);
  const connectionsBefore = readers.map(({ reader }) => reader.connections);
  const statementsBefore = await statements();
  const beganAtMs = performance.now();
  lost.signal(signal);
  door = gateway(1);
  const freshMib = heldBy(door.pid);
  // While they reconnect, and before most of them have.
  await postToAll();
  expect(await lost.exited).toEqual(signal === 'SIGKILL' ? { code: null, signal } : { code: 0, signal: null });
  await eventually(() => readers.every(({ reader }, index) => reader.isOpen && reader.connections > (connectionsBefore[index] ?? 0)), {
    timeoutMs: TIMEOUT_MS,
  });
  const seconds = (performance.now() - beganAtMs) / 1_000;
  await allHave(posted);
  const asked = (await statements()) - statementsBefore;
  await postToAll();
  await allHave(posted);

  for (const { sessionId, reader } of readers) expect(reader.offsets, sessionId).toEqual(Array.from({ length: posted }, (_, offset) => offset));
  expect(readers.map(({ reader }, index) => reader.connections - (connectionsBefore[index] ?? 0))).toEqual(readers.map(() => 1));
  const grownMib = heldBy(door.pid) - freshMib;
  console.info(
    `${signal}: ${readers.length} readers were back after ${seconds.toFixed(1)} s and ${asked} statements, ${sessions.length} posts among them; the lost gateway ` +
      `held ${heldMib.toFixed(0)} MiB, the other went from ${freshMib.toFixed(0)} to ${(freshMib + grownMib).toFixed(0)}`,
  );
  expect(asked).toBeLessThan(readers.length * MOST_STATEMENTS_PER_READER);
  expect(grownMib * 1_024).toBeLessThan(readers.length * MOST_KIB_PER_READER + 64 * 1_024);
}

function gateway(index: number): Gateway {
  const found = cluster.running('agent-gateway')[index];
  if (found === undefined) throw new Error('there is no such gateway');
  return found;
}

/** Posts an event to every session, through the remaining gateway. */
async function postToAll(): Promise<void> {
  const agent = agentClient(() => door.url ?? '', cluster.keys.agentKey);
  await inTurn(sessions, async (sessionId) => {
    await agent.postMessage(sessionId, `number ${posted}`, { trigger_processing: false });
  });
  posted += 1;
}

async function allHave(count: number): Promise<void> {
  await eventually(() => readers.every(({ reader }) => reader.offsets.length >= count), { timeoutMs: TIMEOUT_MS });
}

/** SQL statements of the whole deployment since its start. A process exports its count about once a second. */
async function statements(): Promise<number> {
  const { rows } = await database.query<{ count: number }>(
    'select (xact_commit + xact_rollback)::int as count from pg_stat_database where datname = current_database()',
  );
  return rows[0]?.count ?? 0;
}

/** With bounded concurrency. @throws the first failure */
async function inTurn<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const left = items.values();
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const item of left) await work(item);
    }),
  );
}
