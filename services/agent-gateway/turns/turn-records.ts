import { z } from 'zod';
import { recordOf, summaryOf } from '#actors/engine/decision-record.ts';
import { readTurnRows, type TurnRow } from '#actors/engine/turn-row.ts';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { TurnRecord, TurnSummary } from '#shared/contracts/agent/turn-record.ts';
import { usdOfNano } from '#shared/credit/nano-usd.ts';
import type { NamedStatement, Queryable } from '#shared/storage/database.ts';

/** Of one turn; the longest have some dozen. */
const MAX_EVENTS = 5_000;
const MAX_ROWS = 2_000;
/** More are not checked at a time. */
const MAX_MODERATED = 32;
/** Effects of a turn have the numbers from 1; the calls of its check after the reply are beside. */
const MAX_EFFECTS = 512;

/** The beginnings of turns, newest first. `$2`: below this offset. */
const BEGINNINGS: NamedStatement = {
  name: 'turn-beginnings',
  text: `select off::float8 as off, trace_id from events
    where session_id = $1 and off < $2 and kind = 'status' and source = 'ai_agent' and deleted_at is null and body ->> 'status' = 'acknowledged'
    order by off desc limit $3`,
};

/** `$3`: the turn's own offset, or null for the first one of the trace. */
const BEGINNING: NamedStatement = {
  name: 'turn-beginning',
  text: `select off::float8 as off, trace_id from events
    where session_id = $1 and trace_id = $2 and off = coalesce($3::bigint, off) and kind = 'status' and source = 'ai_agent' and deleted_at is null and body ->> 'status' = 'acknowledged'
    order by off limit 1`,
};

const EVENTS: NamedStatement = {
  name: 'turn-events',
  text: `select trace_id, body from events
    where session_id = $1 and off >= $2 and off < $3 and trace_id = any($4::text[]) and deleted_at is null order by off limit $5`,
};

/** `$2`, `$3`: the turn's first offset, and one behind its last. A message that ended the turn before stands in the middle of that one. */
const MODERATED: NamedStatement = {
  name: 'turn-moderated',
  text: `select body from events
    where session_id = $1 and off < $3 and kind = 'user_message' and deleted_at is null and body -> 'metadata' -> 'moderation' is not null and off > coalesce(
      (select max(off) from events
        where session_id = $1 and off < $2 and kind = 'status' and source = 'ai_agent' and deleted_at is null and body ->> 'status' = 'acknowledged'), -1)
    order by off limit $4`,
};

const ROWS: NamedStatement = {
  name: 'turn-rows',
  text: `select turn_id, off::float8 as off, body from turn_steps where session_id = $1 and off >= $2 and off < $3 order by turn_id, seq limit $4`,
};

const CALLS: NamedStatement = {
  name: 'turn-calls',
  text: `select e.id, e.kind, e.inputs, e.created_at, u.model, u.provider, u.prompt_tokens::float8 as prompt_tokens, u.completion_tokens::float8 as completion_tokens,
      u.cost_nano::float8 as cost_nano, (u.record ->> 'endedAtMs')::float8 - (u.record ->> 'createdAtMs')::float8 as ms
    from effects e left join usage_ledger u on u.generation_id = e.id
    where e.id = any($1::text[]) and e.session_id = $2 and e.kind in ('router-call', 'turn-step', 'turn-applied', 'turn-preamble', 'rewrite-query', 'embed', 'embed-messages')
    order by e.created_at, length(e.id), e.id`,
};

interface Beginning {
  off: number;
  trace_id: string;
}

/** What is stored of turns: their events, their rows, and their effects with the router's records of usage. */
export class TurnRecords {
  readonly #database: Queryable;

  constructor(database: Queryable) {
    this.#database = database;
  }

  /** Newest first. @param before an offset: turns that began below it; null: all. `next`: the same for the next page, null on the last one */
  async page(sessionId: string, before: number | null, limit: number): Promise<{ items: TurnSummary[]; next: number | null }> {
    const { rows: found } = await this.#database.query<Beginning>(BEGINNINGS, [sessionId, before ?? Number.MAX_SAFE_INTEGER, limit + 1]);
    const beginnings = found.slice(0, limit);
    const stored = await this.#stored(sessionId, beginnings, before ?? Number.MAX_SAFE_INTEGER);
    const items = stored.map(({ events, rows }) => summaryOf(events, rows));
    return { items, next: found.length > limit ? (beginnings.at(-1)?.off ?? null) : null };
  }

  /** @param beginOffset of several turns of one trace; null: the first. Null: no such turn is stored */
  async one(sessionId: string, traceId: string, beginOffset: number | null): Promise<TurnRecord | null> {
    const { rows: beginnings } = await this.#database.query<Beginning>(BEGINNING, [sessionId, traceId, beginOffset]);
    const [stored] = await this.#stored(sessionId, beginnings, Number.MAX_SAFE_INTEGER);
    if (stored === undefined) return null;
    const { events, rows, turnId } = stored;
    const [calls, moderated] = await Promise.all([this.#callsOf(sessionId, turnId), this.#moderatedIn(sessionId, events)]);
    return recordOf(events, rows, calls, moderated);
  }

  /** @param events of the turn */
  async #moderatedIn(sessionId: string, events: readonly ConversationEvent[]): Promise<ConversationEvent[]> {
    const { begin_offset: begin, end_offset: end } = summaryOf(events, []);
    const { rows } = await this.#database.query<{ body: ConversationEvent }>(MODERATED, [sessionId, begin, end ?? Number.MAX_SAFE_INTEGER, MAX_MODERATED]);
    return rows.map(({ body }) => body);
  }

  /** Of turns, in the order of their beginnings. @param end an offset behind all of them */
  async #stored(sessionId: string, beginnings: readonly Beginning[], end: number) {
    const from = Math.min(...beginnings.map(({ off }) => off));
    if (beginnings.length === 0) return [];
    const traces = beginnings.map(({ trace_id }) => trace_id);
    const count = beginnings.length;
    const [events, rows] = await Promise.all([
      this.#database.query<{ trace_id: string; body: ConversationEvent }>(EVENTS, [sessionId, from, end, traces, count * MAX_EVENTS]),
      this.#database.query<StoredRow>(ROWS, [sessionId, from, end, count * MAX_ROWS]),
    ]);
    return beginnings.map(({ off, trace_id: traceId }) => {
      const ofTurn = upToReady(events.rows.flatMap(({ trace_id, body }) => (trace_id === traceId && body.offset >= off ? [body] : [])));
      const turnId = turnIdOf(ofTurn, rows.rows);
      return { turnId, events: ofTurn, rows: rowsOf(turnId, rows.rows) };
    });
  }

  async #callsOf(sessionId: string, turnId: string | null): Promise<TurnRecord['calls']> {
    if (turnId === null) return [];
    const ids = [
      ...Array.from({ length: MAX_EFFECTS }, (_, index) => `${turnId}-${index + 1}`),
      ...['', '-2'].map((again) => `${turnId}-applied${again}`),
      ...PREAMBLES.map((number) => `${turnId}-preamble-${number}`),
    ];
    const { rows } = await this.#database.query<StoredCall>(CALLS, [ids, sessionId]);
    return rows.map((row) => {
      const { call = null, template = null } = callInputs.safeParse(row.inputs).data ?? {};
      return {
        id: row.id,
        kind: NAMES[row.kind] ?? call ?? row.kind,
        template,
        opened_at: row.created_at.toISOString(),
        ...{ model: row.model, provider: row.provider, prompt_tokens: row.prompt_tokens, completion_tokens: row.completion_tokens },
        ...{ cost: row.cost_nano === null ? null : usdOfNano(row.cost_nano), ms: row.ms },
      };
    });
  }
}

interface StoredRow {
  turn_id: string;
  off: number;
  body: unknown;
}

interface StoredCall {
  id: string;
  kind: string;
  inputs: unknown;
  created_at: Date;
  model: string | null;
  provider: string | null;
  prompt_tokens: number | null;
  completion_tokens: number | null;
  cost_nano: number | null;
  ms: number | null;
}

/** Of kinds of effects that are one kind of call. */
const NAMES: Readonly<Record<string, string>> = { 'router-call': 'compose', 'turn-applied': 'applied', 'turn-preamble': 'preamble' };
/** One for each message that joins while it is awaited: few in 1.5 s. */
const PREAMBLES = [1, 2, 3, 4];

const callInputs = z.object({ call: z.string().optional(), template: z.string().optional() });
/** `evt_<…>-<number>`: the reply of the call with that id. */
const REPLY_ID = /^evt_(.+)-\d+$/;

/** A trace that a caller began may have several turns. Each ends with its `ready`. */
function upToReady(events: readonly ConversationEvent[]): readonly ConversationEvent[] {
  const end = events.findIndex((event) => event.kind === 'status' && event.source === 'ai_agent' && event.status === 'ready');
  return end === -1 ? events : events.slice(0, end + 1);
}

/** Turns do not overlap, so a row belongs to the turn in whose events it was stored. Null: nothing but its events is stored. */
function turnIdOf(events: readonly ConversationEvent[], rows: readonly StoredRow[]): string | null {
  const begin = events[0]?.offset ?? 0;
  const end = events.at(-1)?.offset ?? begin;
  const row = rows.find(({ off }) => off >= begin && off <= end);
  const reply = events.findLast(({ kind, id }) => kind === 'assistant_message' && REPLY_ID.test(id));
  return row?.turn_id ?? reply?.id.replace(REPLY_ID, 'trn_$1') ?? null;
}

function rowsOf(turnId: string | null, rows: readonly StoredRow[]): TurnRow[] {
  return turnId === null ? [] : readTurnRows(rows.flatMap(({ turn_id, body }) => (turn_id === turnId ? [body] : [])));
}
