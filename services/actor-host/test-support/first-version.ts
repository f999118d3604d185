import { testBundle } from './commands.ts';
import type { TestCluster } from './test-cluster.ts';

const TURN = 'trn_01M7YT5QG0S1M9W62PCM4HQGVX';
const TRACE = '00000000000000000000000000000001';
const AT_MS = 1_795_256_671_744;
const AT = '2026-11-21T10:24:31.744Z';
/** In 2100, so that the turn is never past it. */
const DEADLINE_AT_MS = 4_102_444_800_000;

const snapshot = {
  v: 1_001,
  session: { value: 'responding', context: { mode: 'auto', turnId: TURN, lastMessageAtMs: AT_MS } },
  turn: {
    traceId: TRACE,
    bundleHash: testBundle.hash,
    traceparent: null,
    value: 'composing',
    context: { turnId: TURN, deadlineAtMs: DEADLINE_AT_MS, callNo: 1 },
  },
};

const record = {
  id: 'ses_a',
  customer_id: 'cus_1',
  agent_id: 'acme-support',
  title: null,
  mode: 'auto',
  status: 'typing',
  created_at: '2026-11-21T10:24:31.701Z',
  updated_at: AT,
  last_offset: 3,
  consumption_offsets: { client: -1 },
  metadata: {},
  labels: [],
  ephemeral: false,
};

const events = [
  { kind: 'user_message', id: 'evt_01M7YT5QG1D1HM51ZNYVSBSBXS', source: 'customer', text: 'How long is the warranty?' },
  { kind: 'status', id: 'evt_01M7YT5QG18XV02YE9AS8ZAH7F', source: 'ai_agent', status: 'acknowledged', stage: null, error_detail: null },
  { kind: 'status', id: 'evt_01M7YT5QG15WP7DW3SNMTKGZP5', source: 'ai_agent', status: 'processing', stage: 'matching', error_detail: null },
  { kind: 'status', id: 'evt_01M7YT5QG1W9EB9J0A4KV278C2', source: 'ai_agent', status: 'typing', stage: null, error_detail: null },
].map((event, offset) => ({ ...event, offset, created_at: AT, trace_id: TRACE, metadata: {} }));

/**
 * Rows of a host of the first version (session 1, turn 1) that died between the commit of a message and the publish of its call. Copied from
 * its database, except for the deadline and the configuration's hash.
 */
export async function storeFirstVersion(cluster: TestCluster): Promise<void> {
  const p = 18;
  const inputs = { template: 'compose@1', bundleHash: testBundle.hash, upToOffset: 3, deadlineAtMs: DEADLINE_AT_MS, traceparent: null };
  const key = `${TURN}-deadline`;
  const deadline = { v: 1, type: 'turn.deadline', sessionId: 'ses_a', commandId: key, sentAtMs: AT_MS, answerTo: null, traceparent: null, turnId: TURN };
  await cluster.rows(`insert into sessions (id, p, head, machine_v, snapshot, record, created_at, updated_at) values ('ses_a', $1, 4, 1001, $2, $3, $4, $4)`, [
    p,
    JSON.stringify(snapshot),
    JSON.stringify(record),
    AT,
  ]);
  for (const event of events) {
    await cluster.rows(`insert into events (session_id, off, id, kind, source, trace_id, body, created_at) values ('ses_a', $1, $2, $3, $4, $5, $6, $7)`, [
      event.offset,
      event.id,
      event.kind,
      event.source,
      TRACE,
      JSON.stringify(event),
      AT,
    ]);
  }
  await cluster.rows(
    `insert into effects (id, p, session_id, turn_id, kind, state, inputs, created_at) values ($1, $2, 'ses_a', $3, 'router-call', 'open', $4, $5)`,
    [`${TURN}-1`, p, TURN, JSON.stringify(inputs), AT],
  );
  await cluster.rows('insert into outbox (p, id, created_at) values ($1, $2, $3)', [p, `${TURN}-1`, AT]);
  await cluster.rows('insert into timers (p, key, due_at, command) values ($1, $2, $3, $4)', [p, key, new Date(DEADLINE_AT_MS), JSON.stringify(deadline)]);
}
