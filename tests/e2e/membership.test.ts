import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { beforeAll, describe, expect, it } from 'vitest';
import type { ConversationEvent } from '../../shared/contracts/agent/conversation-event.ts';
import type { RunEnvelope } from '../../shared/contracts/agent/run.ts';
import type { SessionRecord } from '../../shared/contracts/agent/session.ts';
import { type AgentClient, agentClient } from '../helpers/agent-client.ts';
import { type CallbackReceiver, openCallbackReceiver } from '../helpers/callback-receiver.ts';
import { eventually } from '../helpers/eventually.ts';
import { type Cluster, startCluster } from '../helpers/start-cluster.ts';

const SESSIONS = 1_000;
const MESSAGES = 5;
/** One per so many conversations. */
const SESSIONS_PER_RUN = 20;
/** Conversations that are held at a time. */
const AT_ONCE = 128;
/** An owner that is dead is missed after 5 s; what waited for it comes then. */
const PATIENCE_MS = 30_000;
const RETRY_MS = 200;
/** Less than the client waits, so that the server says what did not come. */
const ANSWER_SECONDS = 19;

/**
 * A whole turn, in words. Later messages may join it, and may cancel it; nothing may come between its events, and it ends once. What is
 * here makes no turn fail.
 */
const TURNS = /^(?:user_message acknowledged (?:(?:user_message|processing|typing) )*(?:assistant_message|cancelled) ready )+$/;

let turn = 0;
/** The gateways take turns. */
function nextAgentUrl(): string {
  turn += 1;
  return cluster.agentUrls[turn % cluster.agentUrls.length] ?? '';
}

interface Figures {
  said: number;
  /** Answered with 202: durable, with no place in the log yet. */
  placedLater: number;
  /** Requests that were refused for the moment and sent again. */
  sentAgain: number;
  longestPostMs: number;
}

let cluster: Cluster;
let agent: AgentClient;
let database: pg.Pool;
let receiver: CallbackReceiver;

beforeAll(async () => {
  receiver = await openCallbackReceiver();
  const roles = { 'router-gateway': 1, 'agent-gateway': 2, 'actor-host': 3, 'router-worker': 2, 'effect-worker': 1 };
  cluster = await startCluster({ roles, env: { LOG_LEVEL: 'warn', COALESCE_MS: '150', OUTBOUND_ALLOW_HOSTS: receiver.host } });
  agent = agentClient(nextAgentUrl, cluster.keys.agentKey);
  database = new pg.Pool({ connectionString: cluster.postgres.url, max: 2 });
  // After a case that fails the server goes first. A query that is under way then fails by itself.
  database.on('error', () => {});
});

describe('three actor hosts', () => {
  it('keep a thousand conversations whole, and call back for every run, while one host joins, one leaves and one is killed', async () => {
    const figures: Figures = { said: 0, placedLater: 0, sentAgain: 0, longestPostMs: 0 };
    const changes = membershipChanges();
    const sessions = new Map<string, Said>();
    const runs: Run[] = [];
    const startedAtMs = performance.now();
    await inParallel(Array(SESSIONS).keys(), AT_ONCE, async (number) => {
      const { id } = (await send('/sessions', {}, figures)).body as SessionRecord;
      if (number % SESSIONS_PER_RUN === 0) runs.push(await beginRun(figures));
      const sayThis = async (text: string) => {
        await say(id, text, figures);
        changes.at(figures.said / (SESSIONS * MESSAGES));
      };
      sessions.set(id, await converse(id, number, sayThis));
    });
    const failOverMs = await changes.done();
    await eventually(() => isQuiet(SESSIONS * MESSAGES), { timeoutMs: PATIENCE_MS });
    const seconds = (performance.now() - startedAtMs) / 1_000;

    const turns = await checkLogs(sessions);
    await Promise.all(runs.map(checkRun));
    expect(figures.said).toBe(SESSIONS * MESSAGES);
    expect(Math.min(turns.cancelled, turns.joined), 'there was no cancelling, or no joining, so that nothing was learnt about it').toBeGreaterThan(0);
    const rate = Math.round(figures.said / seconds);
    console.info(
      `${SESSIONS} sessions, ${figures.said} messages, ${runs.length} runs: ${seconds.toFixed(1)} s, ${rate} messages/s, ` +
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

/** How customers talk: some wait for each answer, some go on while the agent answers, some say everything at once. */
const MANNERS = ['patient', 'hasty', 'breathless'] as const;

/** What was said in a session. */
interface Said {
  texts: string[];
  /** Whether one was accepted before the next was sent. */
  inOrder: boolean;
}

async function converse(sessionId: string, number: number, sayThis: (text: string) => Promise<void>): Promise<Said> {
  const manner = MANNERS[number % MANNERS.length];
  const texts = Array.from({ length: MESSAGES }, (_, place) => `!repeat 2 customer-${number}-says-${place}`);
  if (manner === 'breathless') {
    await Promise.all(texts.map(sayThis));
    return { texts, inOrder: false };
  }
  // The model takes its time over what is not the last, so that the next finds it at work.
  if (manner === 'hasty') for (const place of texts.keys()) if (place < MESSAGES - 1) texts[place] = `!slow 500 ${texts[place]}`;
  let nextOffset = 0;
  for (const text of texts) {
    await sayThis(text);
    if (manner === 'patient') nextOffset = await answeredFrom(sessionId, nextOffset);
  }
  return { texts, inOrder: true };
}

interface Run {
  id: string;
  callback: ReturnType<CallbackReceiver['address']>;
}

/** A run whose model takes its time, and whose receiver fails at first. */
async function beginRun(figures: Figures): Promise<Run> {
  const callback = receiver.address(500, 204);
  const input = { claim_id: 'C-1', model: 'Acme Duo', delivered_on: '2026-03-01', description: '!slow 1000 The pump is loud.' };
  const { body } = await send('/routines/triage-warranty-claim/trigger', { input, callback_url: callback.url }, figures);
  return { id: (body as RunEnvelope).run_id, callback };
}

/** It is told once, in as many posts as it took. */
async function checkRun({ id, callback: { heard } }: Run): Promise<void> {
  const response = await fetch(`${nextAgentUrl()}/runs/${id}`, { headers: { authorization: `Bearer ${cluster.keys.agentKey}` } });
  expect(await response.json()).toMatchObject({ run_id: id, status: 'succeeded' });
  expect(heard.length).toBeGreaterThanOrEqual(2);
  expect(new Set(heard.map(({ body }) => String(body))).size).toBe(1);
  expect(JSON.parse(String(heard[0]?.body))).toMatchObject({ run_id: id, status: 'succeeded' });
}

/** Says a message once, however often it has to be sent. */
async function say(sessionId: string, text: string, figures: Figures): Promise<void> {
  const startedAtMs = performance.now();
  const { status } = await send(`/sessions/${sessionId}/events`, { kind: 'user_message', text, idempotency_key: text }, figures);
  figures.said += 1;
  if (status === 202) figures.placedLater += 1;
  figures.longestPostMs = Math.max(figures.longestPostMs, performance.now() - startedAtMs);
}

/** Posts until it is accepted, as a client does that was told to come again. @throws what else it was told */
async function send(path: string, fields: object, figures: Figures): Promise<{ status: number; body: unknown }> {
  const headers = { authorization: `Bearer ${cluster.keys.agentKey}`, 'content-type': 'application/json' };
  const init = { method: 'POST', headers, body: JSON.stringify(fields) };
  for (let tries = 1; ; tries += 1) {
    const response = await fetch(`${nextAgentUrl()}${path}`, { ...init, signal: AbortSignal.timeout(PATIENCE_MS) });
    const body: unknown = await response.json();
    if (response.ok) return { status: response.status, body };
    if (response.status !== 503 || tries * RETRY_MS > PATIENCE_MS) throw new Error(`${path} was answered ${response.status}: ${JSON.stringify(body)}`);
    figures.sentAgain += 1;
    await delay(RETRY_MS);
  }
}

/** Long-polls for the agent's next message. @returns the offset behind it @throws when none comes in time */
async function answeredFrom(sessionId: string, offset: number): Promise<number> {
  const answers = await agent.poll(sessionId, offset, `&kinds=assistant_message&wait_for_data=${ANSWER_SECONDS}`);
  return (answers.at(-1)?.offset ?? offset) + 1;
}

/** One host more, then one that leaves, then one that is killed, each when so much of the talk is over. */
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
    await eventually(async () => (await withoutOwnerSince(null)) === 0, { timeoutMs: PATIENCE_MS });
  };
  const kill = async () => {
    const killedAtMs = performance.now();
    victim?.signal('SIGKILL');
    await victim?.exited;
    const [{ now } = { now: null }] = (await database.query<{ now: string }>('select clock_timestamp()::text as now')).rows;
    expect(await withoutOwnerSince(now)).toBeGreaterThan(0);
    await eventually(async () => (await withoutOwnerSince(now)) === 0, { timeoutMs: PATIENCE_MS });
    failOverMs = performance.now() - killedAtMs;
  };
  const due = [join, leave, kill];
  let changing: Promise<void> = Promise.resolve();
  return {
    /** One after the other, whatever the talk has come to meanwhile. @param share of all messages that are accepted */
    at(share: number): void {
      while (due.length > 0 && share >= 1 - due.length / 4) {
        const change = due.shift();
        if (change !== undefined) changing = changing.then(change);
        // What fails is told by done(); until then nobody waits for it.
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

/** Partitions whose owner has not been heard since then. @param since by the database's clock; null: ever */
async function withoutOwnerSince(since: string | null): Promise<number> {
  const { rows } = await database.query<{ count: number }>(
    `select count(*)::int as count from parts left join hosts on hosts.id = parts.owner
     where hosts.seen_at is null or hosts.seen_at <= coalesce($1::timestamptz, '-infinity')`,
    [since],
  );
  return rows[0]?.count ?? 0;
}

/** @throws with what is still on its way, or waited for */
async function isQuiet(messages: number): Promise<true> {
  const { rows } = await database.query<Record<string, number>>(
    `select (select count(*)::int from effects where state = 'open') as effects, (select count(*)::int from outbox) as outbox,
       (select count(*)::int from timers) as timers, (select count(*)::int from runs where completed_at is null) as runs,
       $1 - (select count(*)::int from events where kind = 'user_message') as messages`,
    [messages],
  );
  if (Object.values(rows[0] ?? {}).some((count) => count > 0)) throw new Error(`there is still something to do: ${JSON.stringify(rows[0])}`);
  return true;
}

/** What the database holds of a session. */
interface Stored {
  head: number;
  ids: string[];
  offsets: number[];
}

interface Turns {
  begun: number;
  cancelled: number;
  /** Messages that came to a turn that had begun. */
  joined: number;
}

/** Reads every log as clients do, and holds it against what was said and against the rows. */
async function checkLogs(sessions: ReadonlyMap<string, Said>): Promise<Turns> {
  const stored = await storedSessions([...sessions.keys()]);
  expect(stored.size).toBe(SESSIONS);
  const turns = { begun: 0, cancelled: 0, joined: 0 };
  await inParallel(sessions, AT_ONCE, async ([id, said]) => {
    const log = await agent.poll(id, 0, '&limit=1000&wait_for_data=0');
    expect(stored.get(id)).toEqual({ head: log.length, ids: log.map((event) => event.id), offsets: log.map((_, place) => place) });
    const { begun, cancelled } = checkLog(log, said);
    turns.begun += begun;
    turns.cancelled += cancelled;
    turns.joined += MESSAGES - begun;
  });
  const { rows } = await database.query('select source, reason from dead_letters');
  expect(rows).toEqual([]);
  return turns;
}

async function storedSessions(ids: readonly string[]): Promise<Map<string, Stored>> {
  const { rows } = await database.query<Stored & { id: string }>(
    `select s.id, s.head::int as head, array_agg(e.id order by e.off) as ids, array_agg(e.off::int order by e.off) as offsets
     from sessions s left join events e on e.session_id = s.id where s.id = any($1) group by s.id, s.head`,
    [ids],
  );
  return new Map(rows.map(({ id, ...rest }) => [id, rest]));
}

function checkLog(log: readonly ConversationEvent[], { texts, inOrder }: Said): { begun: number; cancelled: number } {
  expect(log.map((event) => event.offset)).toEqual(log.map((_, place) => place));
  // Each once, and in the order in which they were accepted.
  const heard = log.flatMap((event) => (event.kind === 'user_message' ? [event.text] : []));
  expect(inOrder ? heard : heard.toSorted()).toEqual(texts);
  // So each `acknowledged` has one `ready`, and no message is behind the last.
  expect(`${log.map(wordOf).join(' ')} `).toMatch(TURNS);
  const tracesOf = (word: string) => log.filter((event) => wordOf(event) === word).map((event) => event.trace_id);
  const begun = tracesOf('acknowledged');
  expect(tracesOf('ready')).toEqual(begun);
  expect(new Set(begun).size).toBe(begun.length);
  // Nobody cancels the last turn, and the scripted model repeats what it was told last.
  const lastWords = heard.at(-1)?.replace(/^.* /, '');
  expect(log.at(-2)).toMatchObject({ kind: 'assistant_message', text: `${lastWords} ${lastWords}` });
  return { begun: begun.length, cancelled: tracesOf('cancelled').length };
}

function wordOf(event: ConversationEvent): string {
  return event.kind === 'status' ? event.status : event.kind;
}

/** Does something with each, a few at a time. @throws the first failure, at once */
async function inParallel<Item>(items: Iterable<Item>, atOnce: number, work: (item: Item) => Promise<void>): Promise<void> {
  const queue = items[Symbol.iterator]();
  const worker = async () => {
    for (let next = queue.next(); next.done !== true; next = queue.next()) await work(next.value);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}
