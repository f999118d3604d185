import type { NamedStatement, Queryable } from '#shared/storage/database.ts';
import { limits } from '../limits.ts';

/** `text` is the JSON as written. */
export interface LoggedEvent {
  offset: number;
  id: string;
  kind: string;
  source: string;
  traceId: string;
  text: string;
}

/** Null matches everything. */
export interface EventFilter {
  kinds: readonly string[] | null;
  source: string | null;
  traceId: string | null;
}

export const everything: EventFilter = { kinds: null, source: null, traceId: null };

export function matches({ kinds, source, traceId }: EventFilter, event: LoggedEvent): boolean {
  return (kinds === null || kinds.includes(event.kind)) && (source === null || source === event.source) && (traceId === null || traceId === event.traceId);
}

export interface LogPage {
  events: LoggedEvent[];
  /** Offset of the session's next event. */
  head: number;
  /** Everything below was considered. At least `head` on the last page. */
  next: number;
}

/** A page as clients get it. */
export interface PageText {
  /** The events as written, as JSON with commas between them, in order. Each piece has whole events, some `limits.pagePieceBytes` of them. */
  pieces: string[];
  /** Events in all of them. */
  count: number;
  /** As of `LogPage`. */
  head: number;
  next: number;
}

/** Where a log ends, and when its session last changed: a later time may be a change of stored events. */
export interface LogHead {
  head: number;
  changedAtMs: number;
}

/** An ephemeral session before its run's first step stores it. */
export interface AwaitedSession {
  customerId: string;
  createdAt: Date;
}

/**
 * Reads sessions' logs from the database; event bodies pass through unparsed. A deleted session is absent, though its tombstone stays. An ephemeral session
 * exists from its run's acceptance, with an empty log until its row is stored.
 */
export class SessionLog {
  readonly #database: Queryable;

  constructor(database: Queryable) {
    this.#database = database;
  }

  /** Events from an offset on, in order, up to `limit` or 4 MiB. Null: no such session. */
  async read(sessionId: string, filter: EventFilter, minOffset: number, limit: number): Promise<LogPage | null> {
    const parameters = [sessionId, minOffset, filter.kinds, filter.source, filter.traceId, limit, limits.pageBytes];
    const { rows } = await this.#database.query<PageRow>(SELECT_PAGE, parameters);
    const [first] = rows;
    if (first === undefined) return (await this.#isAwaited(sessionId)) ? { events: [], head: 0, next: minOffset } : null;
    const events = rows.flatMap(eventOf);
    const { head } = first;
    return {
      events,
      head,
      next: nextAfter({ head, matched: first.matched ?? 0, count: events.length, last: events.at(-1)?.offset ?? null }, minOffset, limit),
    };
  }

  /** The same page, joined by the database to a few rows: a row per event costs this process several times as much. Null: no such session. */
  async readText(sessionId: string, filter: EventFilter, minOffset: number, limit: number): Promise<PageText | null> {
    const parameters = [sessionId, minOffset, filter.kinds, filter.source, filter.traceId, limit, limits.pageBytes, limits.pagePieceBytes];
    const { rows } = await this.#database.query<PagePieceRow>(SELECT_PAGE_PIECES, parameters);
    const [first] = rows;
    if (first === undefined) return (await this.#isAwaited(sessionId)) ? { pieces: [], count: 0, head: 0, next: minOffset } : null;
    const { head } = first;
    const count = rows.reduce((sum, piece) => sum + (piece.count ?? 0), 0);
    return {
      pieces: rows.flatMap(({ text }) => text ?? []),
      count,
      head,
      next: nextAfter({ head, matched: first.matched ?? 0, count, last: rows.at(-1)?.last ?? null }, minOffset, limit),
    };
  }

  async heads(sessionIds: readonly string[]): Promise<Map<string, LogHead>> {
    const { rows } = await this.#database.query<{ id: string; head: number; updated_at: Date }>(SELECT_HEADS, [sessionIds]);
    const heads = new Map(rows.map(({ id, head, updated_at }) => [id, { head, changedAtMs: updated_at.getTime() }]));
    const others = sessionIds.filter((id) => !heads.has(id));
    for (const id of others.length > 0 ? await this.#awaitedAmong(others) : []) heads.set(id, { head: 0, changedAtMs: 0 });
    return heads;
  }

  /** One event as JSON text; null: no such session, or no such event in it. */
  async event(sessionId: string, eventId: string): Promise<string | null> {
    const { rows } = await this.#database.query<{ body: string }>(SELECT_EVENT, [sessionId, eventId]);
    return rows[0]?.body ?? null;
  }

  /** The public record as JSON text; null: no such session. */
  async record(sessionId: string): Promise<string | null> {
    const { rows } = await this.#database.query<{ record: string }>(SELECT_RECORD, [sessionId]);
    return rows[0]?.record ?? null;
  }

  /** An accepted run's ephemeral session that is not stored yet; null for any other. */
  async awaited(sessionId: string): Promise<AwaitedSession | null> {
    const { rows } = await this.#database.query<AwaitedRow>(SELECT_AWAITED, [[sessionId]]);
    return rows[0] === undefined ? null : { customerId: rows[0].customer_id, createdAt: rows[0].created_at };
  }

  async #isAwaited(sessionId: string): Promise<boolean> {
    return (await this.#awaitedAmong([sessionId])).size > 0;
  }

  async #awaitedAmong(sessionIds: readonly string[]): Promise<Set<string>> {
    const { rows } = await this.#database.query<AwaitedRow>(SELECT_AWAITED, [sessionIds]);
    return new Set(rows.map((row) => row.session_id));
  }
}

interface AwaitedRow {
  session_id: string;
  customer_id: string;
  created_at: Date;
}

interface PageRow {
  head: number;
  /** This and all below: null in the only row of an empty page. */
  matched: number | null;
  off: number | null;
  id: string;
  kind: string;
  source: string;
  trace_id: string;
  body: string;
}

interface PagePieceRow {
  head: number;
  /** This and all below: null in the only row of an empty page. */
  matched: number | null;
  count: number | null;
  last: number | null;
  text: string | null;
}

/** What a page says about the log behind it. */
interface PageEnd {
  head: number;
  /** Events that match, up to the limit; the byte limit may have cut some off. */
  matched: number;
  count: number;
  /** Offset of the last event; null: there are none. */
  last: number | null;
}

function nextAfter({ head, matched, count, last }: PageEnd, minOffset: number, limit: number): number {
  const isLast = matched < limit && count === matched;
  return isLast ? Math.max(head, minOffset) : (last ?? minOffset) + 1;
}

function eventOf({ off, id, kind, source, trace_id, body }: PageRow): LoggedEvent[] {
  return off === null ? [] : [{ offset: off, id, kind, source, traceId: trace_id, text: body }];
}

/** Matching events from an offset on, in order, each with the bytes before it. The first has none before it, so it is always returned, however large. */
const PAGE = `select *, count(*) over () as matched, sum(octet_length(body)) over (order by off) - octet_length(body) as bytes_before
      from (
        select off, id, kind, source, trace_id, body::text as body from events
        where session_id = $1 and off >= $2::bigint and deleted_at is null and ($3::text[] is null or kind = any ($3::text[]))
          and ($4::text is null or source = $4) and ($5::text is null or trace_id = $5)
        order by off limit $6::int) wanted`;

const SELECT_PAGE: NamedStatement = {
  name: 'agent-gateway-page-events',
  // One statement, so head and events are consistent.
  text: `select s.head, page.matched, page.off, page.id, page.kind, page.source, page.trace_id, page.body
    from sessions s left join (${PAGE}) page on page.bytes_before < $7::bigint
    where s.id = $1 and s.deleted_at is null order by page.off`,
};

const SELECT_PAGE_PIECES: NamedStatement = {
  name: 'agent-gateway-page',
  text: `select s.head, piece.matched, piece.count, piece.last, piece.text from sessions s left join (
      select max(matched)::int as matched, count(*)::int as count, max(off) as last, string_agg(body, ',' order by off) as text
      from (${PAGE}) page where bytes_before < $7::bigint group by bytes_before / $8::bigint
    ) piece on true
    where s.id = $1 and s.deleted_at is null order by piece.last`,
};

const SELECT_HEADS: NamedStatement = {
  name: 'agent-gateway-heads',
  text: 'select id, head, updated_at from sessions where id = any ($1::text[]) and deleted_at is null',
};

const SELECT_AWAITED: NamedStatement = {
  name: 'agent-gateway-awaited',
  // Queried when no session row was found. One stored meanwhile does not make the session absent; a tombstone does.
  text: `select session_id, customer_id, created_at from runs where session_id = any ($1::text[]) and ephemeral
    and (state in ('accepted', 'running')
      or exists (select 1 from deliveries where deliveries.session_id = runs.session_id and deliveries.run_id = runs.id and deliveries.state = 'open'))
    and not exists (select 1 from sessions where sessions.id = runs.session_id and deleted_at is not null)`,
};

const SELECT_EVENT: NamedStatement = {
  name: 'agent-gateway-event',
  // Within one session, which the primary key begins with: an index of ids would cost each commit.
  text: `select events.body::text as body from events join sessions on sessions.id = events.session_id
    where events.session_id = $1 and events.id = $2 and events.deleted_at is null and sessions.deleted_at is null`,
};

const SELECT_RECORD: NamedStatement = { name: 'agent-gateway-record', text: 'select record::text from sessions where id = $1 and deleted_at is null' };
