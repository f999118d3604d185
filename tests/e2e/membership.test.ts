import pg from 'pg';
import { beforeAll, describe, expect, it } from 'vitest';
import type { ConversationEvent } from '../../shared/contracts/agent/conversation-event.ts';
import type { RunEnvelope } from '../../shared/contracts/agent/run.ts';
import type { SessionRecord } from '../../shared/contracts/agent/session.ts';
import { type AgentClient, agentClient } from '../helpers/agent-client.ts';
import { type CallbackReceiver, openCallbackReceiver } from '../helpers/callback-receiver.ts';
import { eventually } from '../helpers/eventually.ts';
import { inParallel } from '../helpers/in-parallel.ts';
import { type RetryingClient, retryingClient } from '../helpers/retrying-client.ts';
import { checkLog, converse, isQuiet, type SentMessages, storedSessions, type Turns } from '../helpers/session-logs.ts';
import { type Cluster, startCluster } from '../helpers/start-cluster.ts';
import { tier } from '../helpers/tier.ts';

/** So many messages that half of them follow when all three changes have begun. */
const SESSIONS = tier === 'deep' ? 1_000 : 200;
const MESSAGES = 5;
/** One run per this many conversations. */
const SESSIONS_PER_RUN = 20;
/** Concurrent conversations. */
const AT_ONCE = 128;
/** A dead owner is replaced after 5 s; what waited for it is answered then. */
const TIMEOUT_MS = 60_000;
/** Below the client's timeout, so that the server's answer names what is missing. */
const ANSWER_SECONDS = 19;
/**
 * Of a reply. With 128 conversations at once it takes 128 turns' time: on two cores under load 11 s when no host changes, and more on slower ones. A reply
 * that never comes fails the test.
 */
const REPLY_TIMEOUT_MS = 120_000;
/** A busy machine handles 16 messages a second. */
const TEST_TIMEOUT_MS = SESSIONS * MESSAGES * 400;

let turn = 0;
/** The gateways are used in turn. */
function nextAgentUrl(): string {
  turn += 1;
  return cluster.agentUrls[turn % cluster.agentUrls.length] ?? '';
}

let cluster: Cluster;
let agent: AgentClient;
let client: RetryingClient;
let database: pg.Pool;
let receiver: CallbackReceiver;

beforeAll(async () => {
  receiver = await openCallbackReceiver();
  const roles = { 'router-gateway': 1, 'agent-gateway': 2, 'actor-host': 3, 'router-worker': 2, 'effect-worker': 1 };
  cluster = await startCluster({ roles, env: { LOG_LEVEL: 'warn', COALESCE_MS: '150', OUTBOUND_ALLOW_HOSTS: receiver.host } });
  agent = agentClient(nextAgentUrl, cluster.keys.agentKey);
  client = retryingClient({ nextUrl: nextAgentUrl, key: cluster.keys.agentKey, timeoutMs: TIMEOUT_MS });
  database = new pg.Pool({ connectionString: cluster.postgres.url, max: 2 });
  // After a failed case the server ends first. A query in flight then fails by itself.
  database.on('error', () => {});
});

describe('three actor hosts', () => {
  it('lose nothing of hundreds of conversations, and call back for every run, while one host joins, one leaves and one is killed', {
    timeout: TEST_TIMEOUT_MS,
  }, async () => {
    const { figures } = client;
    let said = 0;
    const changes = membershipChanges();
    const sessions = new Map<string, SentMessages>();
    const runs: Run[] = [];
    const startedAtMs = performance.now();
    await inParallel(Array(SESSIONS).keys(), AT_ONCE, async (number) => {
      const { id } = (await accepted('/sessions', {})) as SessionRecord;
      if (number % SESSIONS_PER_RUN === 0) runs.push(await beginRun());
      const say = async (text: string) => {
        await accepted(`/sessions/${id}/events`, { kind: 'user_message', text, idempotency_key: text });
        said += 1;
        changes.at(said / (SESSIONS * MESSAGES));
      };
      const textOf = (words: string, isSlow: boolean) => `${isSlow ? '!slow 500 ' : ''}!repeat 2 ${words}`;
      sessions.set(id, await converse({ number, messages: MESSAGES, textOf, say, answeredFrom: (offset) => answeredFrom(id, offset) }));
    });
    const failOverMs = await changes.done();
    await eventually(() => isQuiet(database, sessions), { timeoutMs: TIMEOUT_MS });
    const seconds = (performance.now() - startedAtMs) / 1_000;

    const turns = await checkLogs(sessions);
    await Promise.all(runs.map(checkRun));
    expect(said).toBe(SESSIONS * MESSAGES);
    expect(Math.min(turns.cancelled, turns.joined), 'there was no cancelling, or no joining, so that nothing was learnt about it').toBeGreaterThan(0);
    const rate = Math.round(said / seconds);
    console.info(
      `${SESSIONS} sessions, ${said} messages, ${runs.length} runs: ${seconds.toFixed(1)} s, ${rate} messages/s, ` +
        `${turns.begun} turns of which ${turns.cancelled} were cancelled, ${turns.joined} messages joined one. ` +
        `Every partition had a live owner ${(failOverMs / 1_000).toFixed(1)} s after the kill; ` +
        `longest post ${(figures.longestPostMs / 1_000).toFixed(1)} s, ${figures.placedLater} answered 202, ${figures.sentAgain} sent again.`,
    );
    await Promise.all([database.end(), receiver.close()]);
    await cluster.stop();
    const exits = await Promise.all(cluster.processes.map(async ({ exited, role }) => ({ role, ...(await exited) })));
    expect(exits.filter(({ code }) => code !== 0)).toEqual([{ role: 'actor-host', code: null, signal: 'SIGKILL' }]);
  });
});

interface Run {
  id: string;
  callback: ReturnType<CallbackReceiver['address']>;
}

/** A run with a slow model and a receiver that refuses the first posts. */
async function beginRun(): Promise<Run> {
  const callback = receiver.address(500, 204);
  const input = { claim_id: 'C-1', model: 'Acme Duo', delivered_on: '2026-03-01', description: '!slow 1000 The pump is loud.' };
  const body = await accepted('/routines/triage-warranty-claim/trigger', { input, callback_url: callback.url });
  return { id: (body as RunEnvelope).run_id, callback };
}

/** All posts of the callback have one body. */
async function checkRun({ id, callback: { received } }: Run): Promise<void> {
  const response = await fetch(`${nextAgentUrl()}/runs/${id}`, { headers: { authorization: `Bearer ${cluster.keys.agentKey}` } });
  expect(await response.json()).toMatchObject({ run_id: id, status: 'succeeded' });
  expect(received.length).toBeGreaterThanOrEqual(2);
  expect(new Set(received.map(({ body }) => String(body))).size).toBe(1);
  expect(JSON.parse(String(received[0]?.body))).toMatchObject({ run_id: id, status: 'succeeded' });
}

/** Posts until it is accepted, as a client does that is refused with a Retry-After. @throws any other refusal */
async function accepted(path: string, fields: object): Promise<unknown> {
  const { status, body } = await client.post(path, fields);
  if (status > 299) throw new Error(`${path} was answered ${status}: ${JSON.stringify(body)}`);
  return body;
}

/** Long-polls for the agent's next message, and again after each 504. @returns the offset behind it @throws when none comes in time, and on any other refusal */
async function answeredFrom(sessionId: string, offset: number): Promise<number> {
  const path = `/sessions/${sessionId}/events?min_offset=${offset}&kinds=assistant_message&wait_for_data=${ANSWER_SECONDS}`;
  const untilMs = performance.now() + REPLY_TIMEOUT_MS;
  for (;;) {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const response = await fetch(`${nextAgentUrl()}${path}`, { headers: { authorization: `Bearer ${cluster.keys.agentKey}` }, signal });
    if (response.status === 200) return (((await response.json()) as ConversationEvent[]).at(-1)?.offset ?? offset) + 1;
    const refusal = await response.text();
    if (response.status !== 504 || performance.now() > untilMs) throw new Error(`${path} answered ${response.status}: ${refusal}`);
  }
}

/** Adds a host, drains one, kills one, each when a share of the messages is accepted. */
function membershipChanges() {
  const [leaver, victim] = cluster.running('actor-host');
  let failOverMs = 0;
  const join = async () => {
    const before = await owners();
    await cluster.add('actor-host');
    await eventually(async () => (await owners()).size > before.size);
  };
  const leave = async () => {
    leaver?.signal('SIGTERM');
    expect(await leaver?.exited).toEqual({ code: 0, signal: null });
    await eventually(async () => (await withoutOwnerSince(null)) === 0, { timeoutMs: TIMEOUT_MS });
  };
  const kill = async () => {
    const killedAtMs = performance.now();
    victim?.signal('SIGKILL');
    await victim?.exited;
    const [{ now } = { now: null }] = (await database.query<{ now: string }>('select clock_timestamp()::text as now')).rows;
    expect(await withoutOwnerSince(now)).toBeGreaterThan(0);
    await eventually(async () => (await withoutOwnerSince(now)) === 0, { timeoutMs: TIMEOUT_MS });
    failOverMs = performance.now() - killedAtMs;
  };
  const due = [join, leave, kill];
  let changing: Promise<void> = Promise.resolve();
  return {
    /** One change after the other, however far the conversations are meanwhile. @param share of all messages that are accepted */
    at(share: number): void {
      while (due.length > 0 && share >= (3.5 - due.length) / 5) {
        const change = due.shift();
        if (change !== undefined) changing = changing.then(change);
        // done() rejects with the failure; until then the promise is not awaited.
        changing.catch(() => {});
      }
    },
    /** @returns how long partitions were without an owner after the kill */
    async done(): Promise<number> {
      await changing;
      expect(due).toEqual([]);
      return failOverMs;
    },
  };
}

async function owners(): Promise<Set<string>> {
  const { rows } = await database.query<{ owner: string }>('select distinct owner from parts where owner is not null');
  return new Set(rows.map(({ owner }) => owner));
}

/** Partitions whose owner has written no heartbeat since then. @param since by the database's clock; null: ever */
async function withoutOwnerSince(since: string | null): Promise<number> {
  const { rows } = await database.query<{ count: number }>(
    `select count(*)::int as count from parts left join hosts on hosts.id = parts.owner
     where hosts.seen_at is null or hosts.seen_at <= coalesce($1::timestamptz, '-infinity')`,
    [since],
  );
  return rows[0]?.count ?? 0;
}

/** Reads every log as clients do, and compares it with what was sent and with the rows. */
async function checkLogs(sessions: ReadonlyMap<string, SentMessages>): Promise<Turns> {
  const stored = await storedSessions(database, [...sessions.keys()]);
  expect(stored.size).toBe(SESSIONS);
  const turns = { begun: 0, cancelled: 0, joined: 0 };
  await inParallel(sessions, AT_ONCE, async ([id, said]) => {
    const log = await agent.poll(id, 0, '&limit=1000&wait_for_data=0');
    const { begun, cancelled, joined } = checkLog(log, said, stored.get(id), repeated);
    turns.begun += begun;
    turns.cancelled += cancelled;
    turns.joined += joined;
  });
  const { rows } = await database.query('select source, reason from dead_letters');
  expect(rows).toEqual([]);
  return turns;
}

/** The scripted model repeats the last message. */
function repeated(text: string): string {
  const words = text.replace(/^.* /, '');
  return `${words} ${words}`;
}
