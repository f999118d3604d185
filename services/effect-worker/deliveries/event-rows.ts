import type { EventWork } from '#bus/messages/event-delivery.ts';
import type { NamedStatement, Queryable } from '#shared/storage/database.ts';

/** Events that one query reads. */
const PAGE_EVENTS = 32;
/** Their bytes, but for the first, which may be larger: bounds the memory of a round. */
const PAGE_BYTES = 256 * 1_024;

interface StoredEvent {
  offset: number;
  /** The JSON as it was written, which readers of the log get, too. */
  text: string;
}

const READ: NamedStatement = {
  name: 'effect_worker_events',
  text: `select off, body from (
      select off, body::text as body, sum(octet_length(body::text)) over (order by off) - octet_length(body::text) as bytes_before from (
        select off, body from events where session_id = $1 and off >= $2::bigint and off < $3::bigint and deleted_at is null
          and ($4::text[] is null or kind = any ($4::text[]))
        order by off limit $5) page) sized
    where bytes_before < $6 order by off`,
};

/** The next events of an interval, in order; none after the last. Deleted events and those of other kinds are left out. */
export async function readEvents(database: Queryable, { sessionId, toOffset, kinds }: EventWork, fromOffset: number): Promise<StoredEvent[]> {
  const { rows } = await database.query<{ off: number; body: string }>(READ, [sessionId, fromOffset, toOffset, kinds, PAGE_EVENTS, PAGE_BYTES]); // no fail point: reads
  return rows.map(({ off, body }) => ({ offset: Number(off), text: body }));
}
