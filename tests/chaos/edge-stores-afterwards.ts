import pg from 'pg';
import { expect } from 'vitest';
import { z } from 'zod';
import type { ConversationEvent } from '../../shared/contracts/agent/conversation-event.ts';
import { type AgentClient, agentClient } from '../helpers/agent-client.ts';
import { eventually } from '../helpers/eventually.ts';
import { inParallel } from '../helpers/in-parallel.ts';
import { isQuiet, storedSessions } from '../helpers/session-logs.ts';
import type { Cluster } from '../helpers/start-cluster.ts';
import type { Accepted } from './edge-stores-traffic.ts';

/** By then everything is settled that waits for an owner, a redelivery or a back-off. */
const QUIET_MS = 60_000;
const AT_ONCE = 8;
const PAGE = '&limit=1000&wait_for_data=0';

const callbackBody = z.looseObject({ run_id: z.string(), status: z.string() });

/** Compares all that was accepted with what is stored, once nothing is in flight. @returns sizes of the logs, by session @throws the first difference */
export async function checkAfterwards(cluster: Cluster, accepted: Accepted): Promise<Map<string, number>> {
  const database = new pg.Pool({ connectionString: cluster.postgres.url, max: 2 });
  try {
    const messages = new Map([...accepted.sessions].map(([id, said]) => [id, { texts: said.accepted, inOrder: false }]));
    await eventually(() => isQuiet(database, messages), { timeoutMs: QUIET_MS });
    const heads = await checkLogs(cluster, database, accepted);
    await inParallel(accepted.runs, AT_ONCE, (run) => checkRun(cluster, run));
    const { rows } = await database.query('select source, reason from dead_letters');
    expect(rows, 'there are dead letters').toEqual([]);
    return heads;
  } finally {
    await database.end();
  }
}

async function checkLogs(cluster: Cluster, database: pg.Pool, { sessions }: Accepted): Promise<Map<string, number>> {
  const agent = agentClient(() => cluster.agentUrls[0] ?? '', cluster.keys.agentKey);
  const stored = await storedSessions(database, [...sessions.keys()]);
  const heads = new Map<string, number>();
  await inParallel(sessions, AT_ONCE, async ([id, said]) => {
    const log = await wholeLog(agent, id);
    expect(log.map(({ offset }) => offset)).toEqual(log.map((_, index) => index));
    expect(stored.get(id)?.offsets.filter((offset) => offset !== null)).toEqual(log.map(({ offset }) => offset));
    const texts = log.flatMap((event) => (event.kind === 'user_message' ? [event.text] : []));
    // Each once, whatever response its client received; none that was never sent.
    expect(texts.toSorted()).toEqual([...new Set(texts)].toSorted());
    expect(said.accepted.filter((text) => !texts.includes(text))).toEqual([]);
    expect(texts.filter((text) => !said.accepted.includes(text) && !said.unknown.includes(text))).toEqual([]);
    const begun = log.flatMap((event) => (event.kind === 'status' && event.status === 'acknowledged' ? [event.trace_id] : []));
    const ended = log.flatMap((event) => (event.kind === 'status' && event.status === 'ready' ? [event.trace_id] : []));
    expect(ended).toEqual(begun);
    const { metadata } = await agent.readSession(id);
    expect(said.changes.filter((name) => metadata[name] !== true)).toEqual([]);
    heads.set(id, log.length);
  });
  return heads;
}

async function wholeLog(agent: AgentClient, sessionId: string): Promise<ConversationEvent[]> {
  const log: ConversationEvent[] = [];
  for (let page = await agent.poll(sessionId, 0, PAGE); page.length > 0; page = await agent.poll(sessionId, log.length, PAGE)) log.push(...page);
  return log;
}

async function checkRun(cluster: Cluster, { runId, callback }: Accepted['runs'][number]): Promise<void> {
  const [url] = cluster.agentUrls;
  const response = await fetch(`${url}/runs/${runId}`, { headers: { authorization: `Bearer ${cluster.keys.agentKey}` } });
  const { status } = z.looseObject({ status: z.string() }).parse(await response.json());
  const bodies = new Set(callback.received.map(({ body }) => String(body)));
  expect(bodies.size, `${runId} was called back with ${bodies.size} payloads`).toBe(1);
  const reported = callbackBody.parse(JSON.parse([...bodies][0] ?? ''));
  expect(reported).toMatchObject({ run_id: runId, status });
  expect(['succeeded', 'failed']).toContain(status);
}
