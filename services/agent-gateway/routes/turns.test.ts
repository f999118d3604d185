import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { TurnRow } from '#actors/engine/turn-row.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { send } from '../test-support/api.ts';
import { openTestDeployment, type TestDeployment } from '../test-support/test-deployment.ts';

const AT = '2030-01-01T00:00:00.000Z';
const traceOf = (turn: number) => String(turn).padStart(32, '0');

let deployment: TestDeployment;
let sessionId: string;
beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
});
afterEach(async () => {
  await deployment.closeApps();
  for (const table of ['events', 'turn_steps', 'effects', 'usage_ledger', 'sessions']) await deployment.database.query(`delete from ${table}`);
});
afterAll(() => deployment.close());

const app = () => deployment.app();
const get = async (path: string) => await send(app(), 'GET', path);

/** Appends events of one trace. */
async function log(turn: number, ...events: readonly object[]): Promise<void> {
  const { rows } = await deployment.database.query<{ head: number }>('select coalesce(max(off) + 1, 0)::int as head from events where session_id = $1', [
    sessionId,
  ]);
  let offset = rows[0]?.head ?? 0;
  for (const event of events) {
    const body = { id: `evt_${turn}-${offset}`, offset, created_at: AT, source: 'ai_agent', trace_id: traceOf(turn), metadata: {}, ...event };
    const { id, kind, source } = body as unknown as { id: string; kind: string; source: string };
    await deployment.database.query(
      'insert into events (session_id, off, id, kind, source, trace_id, body, created_at) values ($1, $2, $3, $4, $5, $6, $7::json, $8)',
      [sessionId, offset, id, kind, source, traceOf(turn), JSON.stringify(body), AT],
    );
    offset += 1;
  }
}

const status = (name: string, more: object = {}) => ({ kind: 'status', status: name, stage: null, error_detail: null, ...more });
const said = { kind: 'user_message', source: 'customer', text: 'It leaks' };
const reply = { kind: 'assistant_message', text: 'Unplug it.', metadata: { model: 'a/b', provider: 'p' } };

async function begin(): Promise<void> {
  sessionId = (await send(app(), 'POST', '/sessions', { allow_greeting: false })).json().id;
}

async function stage(turnId: string, off: number, rows: readonly object[]): Promise<void> {
  for (const [seq, row] of rows.entries())
    await deployment.database.query('insert into turn_steps (session_id, turn_id, seq, off, body) values ($1, $2, $3, $4, $5::json)', [
      ...[sessionId, turnId, seq, off],
      JSON.stringify(row),
    ]);
}

describe('GET /sessions/:session_id/turns', () => {
  it('DESIGN 14: lists the turns of a session, newest first, in pages, by how they have ended', async () => {
    await begin();
    await log(1, said, status('acknowledged'), status('typing'), reply, status('ready'));
    await log(2, said, status('acknowledged'), status('error', { error_detail: 'engine_error: no reply' }), status('ready'));
    await log(3, said, status('acknowledged'), status('cancelled'), status('ready'));
    await log(4, said, status('acknowledged'), status('ready'));
    await log(5, said, status('acknowledged'), status('processing', { stage: 'matching' }));
    const first = (await get(`/sessions/${sessionId}/turns?limit=3`)).json();
    const second = (await get(`/sessions/${sessionId}/turns?limit=3&cursor=${first.next_cursor}`)).json();

    expect([first.has_more, second.has_more, second.next_cursor]).toEqual([true, false, null]);
    expect([...first.items, ...second.items].map((item) => [item.trace_id, item.outcome, item.error, item.end_offset === null])).toEqual([
      [traceOf(5), 'in_progress', null, true],
      [traceOf(4), 'silent', null, false],
      [traceOf(3), 'cancelled', null, false],
      [traceOf(2), 'failed', 'engine_error: no reply', false],
      [traceOf(1), 'replied', null, false],
    ]);
    expect(second.items.at(-1)).toMatchObject({ begin_offset: 1, end_offset: 4, reply: { offset: 3, model: 'a/b', provider: 'p' }, policies: [] });
  });

  it('is empty without turns, 404 for an unknown session, and 400 for a cursor that is none', async () => {
    await begin();
    expect((await get(`/sessions/${sessionId}/turns`)).json()).toEqual({ items: [], has_more: false, next_cursor: null });
    expect((await get('/sessions/ses_unknown/turns')).statusCode).toBe(404);
    for (const query of ['cursor=x', 'cursor=-1', 'limit=0', 'limit=101']) expect((await get(`/sessions/${sessionId}/turns?${query}`)).statusCode).toBe(400);
  });
});

describe('GET /sessions/:session_id/turns/:trace_id', () => {
  it('DESIGN 14: says what models have answered, what relationships have left out, and what each call has cost', async () => {
    await begin();
    await log(1, said, status('acknowledged'), status('processing', { stage: 'matching' }), status('typing'), { ...reply, id: 'evt_t1-2' }, status('ready'));
    await log(2, said, status('acknowledged'), status('typing'));
    await stage('trn_t1', 3, rowsOfTurn);
    await stage('trn_t2', 7, [rowsOfTurn[0] as object]);
    const opened = [
      ['trn_t1-1', 'turn-step', { call: 'match', template: 'match-actionable@1' }],
      ['trn_t1-2', 'router-call', { template: 'compose-guided@2' }],
      ['trn_t1-3', 'search', {}],
      ['trn_t1-4', 'rewrite-query', { template: 'rewrite-query@1' }],
      ['trn_t1-5', 'embed', {}],
      ['trn_t1-6', 'embed-messages', {}],
      ['trn_t2-1', 'router-call', {}],
    ] as const;
    for (const [id, kind, inputs] of opened)
      await deployment.database.query(
        `insert into effects (id, p, session_id, turn_id, kind, state, inputs, created_at) values ($1, 0, $2, 'trn_t1', $3, 'done', $4::json, $5)`,
        [id, sessionId, kind, JSON.stringify(inputs), AT],
      );
    await deployment.database.query(
      `insert into usage_ledger (generation_id, key_id, created_at, model, provider, prompt_tokens, completion_tokens, cost_nano, record)
       values ('trn_t1-2', 'key', $1, 'a/b', 'p', 100, 20, 1500000, '{"createdAtMs": 1000, "endedAtMs": 1250}')`,
      [AT],
    );

    const record = (await get(`/sessions/${sessionId}/turns/${traceOf(1)}`)).json();
    expect(record).toMatchObject({
      outcome: 'replied',
      policies: [{ id: 'leak', rationale: 'water' }],
      steps: [],
      evidence: [
        { id: 'leak', applies: true, rationale: 'water', class: 'actionable', batch: 'pass-1:actionable-1', model: 'a/b', ms: 12 },
        { id: 'routine:refund:0', applies: true, rationale: null },
      ],
      resolutions: [{ entity: 'routine:refund', outcome: 'deprioritized', relationship: 'priority', counterparts: ['policy:leak'] }],
      retrieval: { documents: 1, failure: null, ms: 40, query: { text: 'warranty of hoses', failure: null, model: 'a/b', ms: 12 } },
      likeness: { routine: { id: 'refund', by: 'vectors' }, terms: 3, failure: null, model: 'a/b', ms: 12 },
      check: { outcome: 'missed', reason: null, policies: [{ id: 'leak', followed: false, rationale: 'left out' }] },
    });
    expect(record.calls).toEqual([
      { id: 'trn_t1-1', kind: 'match', template: 'match-actionable@1', opened_at: AT, ...unknownUsage },
      {
        ...{ id: 'trn_t1-2', kind: 'compose', template: 'compose-guided@2', opened_at: AT, model: 'a/b', provider: 'p' },
        ...{ prompt_tokens: 100, completion_tokens: 20, cost: 0.0015, ms: 250 },
      },
      { id: 'trn_t1-4', kind: 'rewrite-query', template: 'rewrite-query@1', opened_at: AT, ...unknownUsage },
      { id: 'trn_t1-5', kind: 'embed', template: null, opened_at: AT, ...unknownUsage },
      { id: 'trn_t1-6', kind: 'embed-messages', template: null, opened_at: AT, ...unknownUsage },
    ]);
    // The documents of a search are for the reply's prompt alone.
    expect(JSON.stringify(record)).not.toContain('Hoses');
  });

  it('has the messages that moderation reads since the turn before began, also one that ended that turn', async () => {
    await begin();
    const marked = (text: string, statusOf: string) => ({ ...said, text, metadata: { moderation: { mode: 'auto', status: statusOf } } });
    await log(1, marked('first', 'passed'), status('acknowledged'), marked('second', 'passed'), status('cancelled'), status('ready'));
    await log(
      2,
      marked('third', 'unavailable'),
      status('acknowledged'),
      status('error', { error_detail: 'moderation_unavailable: no result' }),
      status('ready'),
    );
    await log(3, marked('fourth', 'pending'), status('acknowledged'));
    const moderatedIn = async (turn: number) => (await get(`/sessions/${sessionId}/turns/${traceOf(turn)}`)).json().moderation;

    expect(await moderatedIn(1)).toEqual([
      { event_id: 'evt_1-0', offset: 0, mode: 'auto', status: 'passed', tags: [] },
      expect.objectContaining({ offset: 2 }),
    ]);
    expect(await moderatedIn(2)).toMatchObject([{ offset: 2 }, { offset: 5, status: 'unavailable' }]);
    expect(await moderatedIn(3)).toEqual([{ event_id: 'evt_3-9', offset: 9, mode: 'auto', status: 'pending', tags: [] }]);
  });

  it('tells turns apart whose messages came in one trace, each by its offset', async () => {
    await begin();
    await log(1, said, status('acknowledged'), status('error', { error_detail: 'engine_error: no reply' }), status('ready'));
    await log(1, said, status('acknowledged'), status('typing'), reply, status('ready'));
    const { items } = (await get(`/sessions/${sessionId}/turns`)).json();
    const facts = (turn: { begin_offset: number; end_offset: number; outcome: string }) => [turn.begin_offset, turn.end_offset, turn.outcome];
    expect(items.map(facts)).toEqual([
      [5, 8, 'replied'],
      [1, 3, 'failed'],
    ]);
    const one = async (query: string) => (await get(`/sessions/${sessionId}/turns/${traceOf(1)}${query}`)).json();
    expect([facts(await one('')), facts(await one('?begin_offset=5'))]).toEqual([
      [1, 3, 'failed'],
      [5, 8, 'replied'],
    ]);
    expect((await one('?begin_offset=4')).code).toBe('not_found');
    expect((await get(`/sessions/${sessionId}/turns/${traceOf(1)}?begin_offset=x`)).statusCode).toBe(400);
  });

  it('is 404 for a turn of another session, and for what is no trace', async () => {
    await begin();
    await log(1, said, status('acknowledged'));
    const first = sessionId;
    await begin();
    for (const path of [traceOf(1), traceOf(9), 'x', "' or 1=1"]) {
      expect((await get(`/sessions/${sessionId}/turns/${encodeURIComponent(path)}`)).json()).toMatchObject({ code: 'not_found' });
    }
    expect((await get(`/sessions/${first}/turns/${traceOf(1)}`)).json()).toMatchObject({ outcome: 'in_progress', evidence: [], calls: [] });
    expect((await get(`/sessions/ses_unknown/turns/${traceOf(1)}`)).statusCode).toBe(404);
  });

  it('is gone with its events', async () => {
    await begin();
    await log(1, said, status('acknowledged'), reply, status('ready'));
    await deployment.database.query('update events set deleted_at = now() where session_id = $1', [sessionId]);
    expect((await get(`/sessions/${sessionId}/turns/${traceOf(1)}`)).statusCode).toBe(404);
    expect((await get(`/sessions/${sessionId}/turns`)).json().items).toEqual([]);
  });
});

const unknownUsage = { model: null, provider: null, prompt_tokens: null, completion_tokens: null, cost: null, ms: null };
const call = { model: 'a/b', ms: 12, tokens: 30 };
const rowsOfTurn: readonly TurnRow[] = [
  { kind: 'began', state: { seq: 0, appliedPolicyIds: [], paths: {}, preambles: [] } },
  {
    ...{ kind: 'match', key: 'pass-1:actionable-1', ...call },
    reference: { id: 'actionable-1', class: 'actionable', policyIds: ['leak', 'routine:refund:0'] },
    answer: {
      verdicts: [
        { id: 'leak', applies: true, rationale: 'water' },
        { id: 'routine:refund:0', applies: true, rationale: null },
      ],
      clarification: null,
    },
  },
  { kind: 'likeness', key: 'likeness', likeliest: 'refund', terms: [1, 2, 5], failure: null, ...call },
  { kind: 'query', key: 'query', query: 'warranty of hoses', failure: null, ...call },
  { kind: 'embedding', key: 'embedding', vector: 'AACAPw==', ...call },
  { kind: 'search', key: 'search', ms: 40, documents: [{ content: 'Hoses: two years.', title: null, url: null }], failure: null },
  {
    ...{ kind: 'resolved', policies: [{ id: 'leak', rationale: 'water' }], clarifications: [], steps: [], paths: {}, tracked: [] },
    resolutions: [{ entity: 'routine:refund', outcome: 'deprioritized', relationship: 'priority', counterparts: ['policy:leak'] }],
  },
  {
    ...{ kind: 'check-reply', key: 'check-reply', ...call },
    reference: { policyIds: ['leak'] },
    answer: { verdicts: [{ id: 'leak', applies: false, rationale: 'left out' }], clarification: null },
  },
];
