import type { NamedStatement, Queryable } from '#shared/storage/database.ts';
import { limits } from './limits.ts';
import { type PagePosition, startOf } from './page-cursor.ts';

/** Null does not filter. */
interface SessionFilter {
  customerId: string | null;
  label: string | null;
}

interface Listed {
  sort: 'asc' | 'desc';
  /** Null: from the first. */
  after: PagePosition | null;
  limit: number;
}

export interface SessionPage {
  /** Public records as JSON, with commas between them. */
  records: string;
  /** Null on the last page. */
  next: PagePosition | null;
  /** How many sessions there are, counted up to `limits.countedSessions`. */
  count: number;
}

/** Lists of the sessions that are stored and not deleted, by creation. */
export class SessionList {
  readonly #database: Queryable;

  constructor(database: Queryable) {
    this.#database = database;
  }

  /** Up to `limit` or 4 MiB of records. The database joins them: a row per session costs this process several times as much. */
  async page(filter: SessionFilter, { sort, after, limit }: Listed): Promise<SessionPage> {
    const { pages, values } = statementsFor(filter);
    const parameters = [...startOf(sort, after), limit + 1, limits.pageBytes, limits.countedSessions, ...values];
    const { rows } = await this.#database.query<Row>(pages[sort], parameters);
    const [page] = rows;
    if (page === undefined) throw new Error('a statement without a group has no row');
    const { records, listed, matched, last_id: id, last_at: at, total: count } = page;
    const isLast = id === null || at === null || listed === matched;
    return { records: records ?? '', next: isLast ? null : { createdAtMs: at.getTime(), id }, count };
  }
}

interface Row {
  /** This and the next four: null of an empty page. */
  records: string | null;
  listed: number | null;
  /** Without the byte limit; limit + 1 when there are more. */
  matched: number | null;
  last_id: string | null;
  last_at: Date | null;
  total: number;
}

interface Statements {
  pages: Record<'asc' | 'desc', NamedStatement>;
}

function statementsFor({ customerId, label }: SessionFilter): Statements & { values: readonly string[] } {
  if (customerId !== null && label !== null) return { ...OF_BOTH, values: [customerId, label] };
  if (customerId !== null) return { ...OF_CUSTOMER, values: [customerId] };
  if (label !== null) return { ...OF_LABEL, values: [label] };
  return { ...ALL, values: [] };
}

interface Source {
  /** The table with the list's order. */
  table: 'sessions' | 'session_labels';
  id: 'id' | 'session_id';
  /** Joins the record where it is in another table. */
  join: string;
  /** Columns by which it is filtered, the first of an index of which creation and id are the last. */
  keys: readonly string[];
  /** That of the index. */
  condition: string;
}

/**
 * Filters are written as bounds of the index, and are part of the order. With equality, the planner may walk the index over all sessions instead, and skip those
 * of others: a million of them, if a customer has only old ones.
 */
function statements(name: string, { table, id, join, keys, condition }: Source): Statements {
  const columns = [...keys, 'created_at', id].map((column) => `listed.${column}`);
  const filters = keys.map((_, index) => `$${6 + index}`);
  const list = (texts: readonly string[]) => texts.join(', ');
  const order = (sort: 'asc' | 'desc') => list(columns.map((column) => `${column} ${sort}`));
  const within = (inclusive: '<=' | '>=') =>
    keys.length === 0 ? condition : `${condition} and (${list(columns.slice(0, keys.length))}) ${inclusive} (${list(filters)})`;
  const lowest = list([...filters, `'-infinity'::timestamptz`, `''`]);
  const counted = `select 1 from ${table} as listed where ${within('<=')} and (${list(columns)}) > (${lowest}) order by ${order('asc')} limit $5::int`;
  const page = (sort: 'asc' | 'desc', beyond: '<' | '>'): NamedStatement => ({
    name: `agent-gateway-sessions${name}-${sort}`,
    // The first session is always returned, however large.
    text: `select page.*, counted.total from (
        select string_agg(record, ',' order by place) as records, count(*)::int as listed, max(matched) as matched,
          (array_agg(id order by place desc))[1] as last_id, (array_agg(created_at order by place desc))[1] as last_at
        from (
          select *, row_number() over (order by created_at ${sort}, id ${sort}) as place, count(*) over ()::int as matched,
            sum(octet_length(record)) over (order by created_at ${sort}, id ${sort}) - octet_length(record) as bytes_before
          from (
            select listed.${id} as id, listed.created_at, record::text as record from ${table} as listed ${join}
            where ${within(sort === 'asc' ? '<=' : '>=')} and (${list(columns)}) ${beyond} (${list([...filters, '$1::timestamptz', '$2::text'])})
            order by ${order(sort)} limit $3::int) wanted) sized
        where bytes_before < $4::bigint and place < $3::int) page
      cross join (select count(*)::int as total from (${counted}) counting) counted`,
  });
  return { pages: { asc: page('asc', '>'), desc: page('desc', '<') } };
}

const OWN = { table: 'sessions', id: 'id', join: '', condition: 'listed.deleted_at is null' } as const;
/** A deleted session has no labels. */
const LABELLED = { table: 'session_labels', id: 'session_id', join: 'join sessions on sessions.id = listed.session_id', condition: 'true' } as const;

const ALL = statements('', { ...OWN, keys: [] });
const OF_CUSTOMER = statements('-of-customer', { ...OWN, keys: ['customer_id'] });
const OF_LABEL = statements('-of-label', { ...LABELLED, keys: ['label'] });
const OF_BOTH = statements('-of-both', { ...LABELLED, keys: ['customer_id', 'label'] });
