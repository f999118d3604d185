import { expect } from 'vitest';
import { z } from 'zod';
import type { ConversationEvent } from '../../shared/contracts/agent/conversation-event.ts';
import { eventually } from '../helpers/eventually.ts';
import { inParallel } from '../helpers/in-parallel.ts';
import { checkLog, storedSessions } from '../helpers/session-logs.ts';
import { checkCancelled } from './cancel-load.ts';
import type { ReadToEnd } from './client-stream.ts';
import { checkCustomer } from './customer-load.ts';
import type { Environment } from './environment.ts';
import type { Accepted, AcceptedRun } from './load.ts';
import { checkChangedLog } from './log-change-load.ts';
import { expectRedelivered, repeatsBeyond } from './repeated-calls.ts';
import { checkInjected } from './tool-event-load.ts';
import { untilQuiet } from './until-quiet.ts';
import { checkDelivery } from './webhook-load.ts';

/** Repetitions that the faults of a scenario allow. */
export interface Allowed {
  /** How often the same model call may be repeated without a redelivery at a running worker: once for each worker that was killed, and for each restart of the broker. */
  extraCalls: number;
}

/** Until the ledger has what was billed. */
const BOOKED_MS = 60_000;
const AT_ONCE = 16;

/** Compares everything that was accepted with what is stored, when nothing is in flight any more. @throws the first difference */
export async function checkInvariants(environment: Environment, accepted: Accepted, allowed: Allowed): Promise<void> {
  await untilQuiet(environment, accepted.sessions);
  await environment.receiver.caughtUp();
  await checkLogs(environment, accepted);
  await inParallel(accepted.injected, AT_ONCE, (one) => checkInjected(environment.client, one));
  await checkChanges(environment, accepted);
  environment.figures.toolEvents += accepted.injected.reduce((sum, { replies }) => sum + replies.size, 0);
  for (const run of accepted.runs) await checkRun(environment, run);
  for (const run of accepted.cancelled) await checkCancelled(environment, run);
  for (const delivery of accepted.deliveries) await checkDelivery(environment, delivery);
  await checkEventWebhooks(environment, accepted);
  checkStreams(environment, accepted.streams);
  await checkLedger(environment, accepted, allowed);
  await checkCustomers(environment);
  await checkRepeats(environment, accepted, allowed);
  const { rows } = await environment.database.query('select source, reason from dead_letters');
  expect(rows, 'there are dead letters').toEqual([]);
  await checkAuditor(environment);
}

/** No call was made again but for a fault, or at a redelivery. */
async function checkRepeats({ figures, model, upstream, callRedeliveries }: Environment, accepted: Accepted, allowed: Allowed): Promise<void> {
  const ofModel = model.callsSince(accepted.modelAskedBefore);
  const ofStreams = accepted.streams.flatMap(({ call }) => upstream.calls(call).map(() => call));
  const redelivered = (await callRedeliveries()) - accepted.redeliveredBefore;
  expectRedelivered([...repeatsBeyond(allowed.extraCalls, ofModel), ...repeatsBeyond(allowed.extraCalls, ofStreams)], redelivered);
  figures.callsRedelivered += redelivered;
  figures.extraModelCalls += repeatsBeyond(0, ofModel).length;
  figures.extraStreamCalls += repeatsBeyond(0, ofStreams).length;
}

/** Customers and their values are as the acknowledged writes left them, and so are logs whose events were patched and deleted. */
async function checkChanges(environment: Environment, { changedLogs, customers }: Accepted): Promise<void> {
  const stored = await storedSessions(
    environment.database,
    changedLogs.map(({ sessionId }) => sessionId),
  );
  await inParallel(changedLogs, AT_ONCE, (log) => checkChangedLog(environment, log, stored.get(log.sessionId)));
  await inParallel(customers, AT_ONCE, (customer) => checkCustomer(environment.client, customer));
  environment.figures.changedLogs += changedLogs.length;
  environment.figures.customers += customers.length;
}

/** Each session has its customer, and the customer of a run ends with its session. */
async function checkCustomers({ database }: Environment): Promise<void> {
  const { rows } = await database.query(CUSTOMERS_ASTRAY);
  expect(rows, 'sessions have no customer, or customers of runs have no session').toEqual([]);
}

const CUSTOMERS_ASTRAY = `
  select id from sessions where deleted_at is null and not exists (select 1 from customers where customers.id = sessions.customer_id)
  union all
  select id from customers where ephemeral
    and not exists (select 1 from sessions where sessions.customer_id = customers.id and sessions.deleted_at is null)`;

/** Only its owner commits to a partition. */
export async function checkAuditor({ auditor, figures }: Environment): Promise<void> {
  expect(await auditor.commits(), 'no commit was seen, so nothing is known about the fence').toBeGreaterThan(0);
  figures.zombieCommits = await auditor.zombieCommits();
  figures.zombiesRejected = await auditor.rejected();
  expect(figures.zombieCommits, 'hosts have committed to partitions that were not theirs').toBe(0);
}

/** Each session's log is what was said and answered, as stored and as read. */
export async function checkLogs({ database, client, stubbornClient, model, figures }: Environment, { sessions }: Pick<Accepted, 'sessions'>): Promise<void> {
  const stored = await storedSessions(database, [...sessions.keys()]);
  expect(stored.size).toBe(sessions.size);
  await inParallel(sessions, AT_ONCE, async ([id, said]) => {
    const { status, body } = await client.get(`/sessions/${id}/events?min_offset=0&limit=1000&wait_for_data=0`);
    expect(status).toBe(200);
    const turns = checkLog(body as ConversationEvent[], said, stored.get(id), model.answerTo);
    figures.turns += turns.begun;
    figures.cancelled += turns.cancelled;
    figures.joined += turns.joined;
    figures.messages += said.texts.length;
  });
  figures.sessions += sessions.size;
  figures.sentAgain = client.figures.sentAgain + stubbornClient.figures.sentAgain;
}

/** Each event was posted with the bytes of the log, and for the first time only after all events before it; none was left out. Repeats are allowed. */
async function checkEventWebhooks({ database, figures }: Environment, { eventWebhooks }: Accepted): Promise<void> {
  for (const [id, { received }] of eventWebhooks) {
    const { rows } = await database.query<{ body: string }>('select body::text as body from events where session_id = $1 order by off', [id]);
    const first = [...new Set(received.map(({ body }) => String(body)))];
    expect(first, `the events of ${id} as they were posted first`).toEqual(rows.map(({ body }) => body));
    expect(new Set(received.map(({ headers }) => headers['x-session-id'])), `of ${id}`).toEqual(new Set([id]));
    figures.events += first.length;
    figures.eventsAgain += received.length - first.length;
  }
}

const runRecord = z.looseObject({ run_id: z.string(), status: z.string(), output: z.unknown() });
const payload = z.looseObject({
  run_id: z.string(),
  status: z.string(),
  idempotency_key: z.string(),
  output: z.object({ booked: z.string(), looked: z.string() }),
});

/** All posts of a callback have one body; the once-only call happened at most once, and is reported as `outcome_unknown` where that is so. */
async function checkRun({ client, tools, figures }: Environment, { runId, key, callback: { received } }: AcceptedRun): Promise<void> {
  const record = runRecord.parse((await client.get(`/runs/${runId}`)).body);
  const bodies = new Set(received.map(({ body }) => String(body)));
  expect(bodies.size, `${runId} was called back with ${bodies.size} payloads`).toBe(1);
  const [body = ''] = bodies;
  expect(JSON.parse(body), `${runId} did not succeed: ${body}`).toMatchObject({ status: 'succeeded' });
  const reported = payload.parse(JSON.parse(body));
  expect({ ...record, status: reported.status }).toMatchObject({ run_id: runId, status: 'succeeded', output: reported.output });
  expect(reported.run_id).toBe(runId);
  const booked = tools.booked.get(key) ?? 0;
  const looked = tools.looked.get(key) ?? 0;
  expect(looked, `${key} was never looked up`).toBeGreaterThan(0);
  expect(reported.output.looked).toBe(`looked ${key}`);
  expect(booked, `${key} was booked ${booked} times`).toBeLessThanOrEqual(1);
  const isUnknown = reported.output.booked.includes('outcome_unknown');
  if (!isUnknown) expect({ booked, reported: reported.output.booked }).toEqual({ booked: 1, reported: `booked ${key}` });
  figures.runs += 1;
  figures.callbacks += received.length;
  figures.toolCalls += booked + looked;
  if (isUnknown) figures.outcomesUnknown += 1;
}

/** Each stream has a terminal frame and no gap. */
function checkStreams({ figures }: Environment, streams: readonly ReadToEnd[]): void {
  for (const stream of streams) {
    const { call, whole, text, ends, behindEnd, wasCut, wasResumed, refusedWith, fault } = stream;
    expect(fault, call).toBeNull();
    if (refusedWith === null && (!wasCut || wasResumed)) expect({ call, ends: ends.length, behindEnd }).toEqual({ call, ends: 1, behindEnd: 0 });
    expect(text, call).toBe(ends[0] === 'done' ? whole : whole.slice(0, text.length));
    figures.streams += 1;
    if (typeof ends[0] === 'number') figures.streamsWithError += 1;
    if (refusedWith !== null) figures.streamsRefused += 1;
    if (wasCut) figures.streamsCut += 1;
    if (wasResumed) figures.streamsResumed += 1;
  }
}

/**
 * Each stream of which the provider was asked has one row in the ledger, and each session a row for every message of the agent. A call whose gateway and
 * worker both died is in no queue, and may have none.
 */
async function checkLedger(environment: Environment, { sessions, streams }: Accepted, allowed: Allowed): Promise<void> {
  const { database, upstream, figures } = environment;
  const asked = streams.filter(({ call, wasCut }) => upstream.calls(call).length > 0 && !(wasCut && allowed.extraCalls > 0)).map(({ call }) => call);
  await eventually(
    async () => {
      const { rows } = await database.query<{ call: string; rows: number }>(
        `select asked.call, count(generation_id)::int as rows from unnest($1::text[]) as asked (call) left join usage_ledger on record->>'user' = asked.call
       group by asked.call having count(generation_id) <> 1`,
        [asked],
      );
      expect(rows, 'a stream has not one row in the ledger').toEqual([]);
      return true;
    },
    { timeoutMs: BOOKED_MS },
  );
  await eventually(
    async () => {
      const { rows } = await database.query(
        `select session_id, count(*)::int as messages from events
         where session_id = any($1) and kind = 'assistant_message' group by session_id
         having count(*) > (select count(*) from usage_ledger where record->>'kind' = 'actor' and record->>'sessionId' = session_id)`,
        [[...sessions.keys()]],
      );
      expect(rows, 'a session has more messages of the agent than rows in the ledger').toEqual([]);
      return true;
    },
    { timeoutMs: BOOKED_MS },
  );
  figures.streamsBilled += asked.length;
}
