import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { SessionRecord } from '#shared/contracts/agent/session.ts';
import type { NamedStatement, Queryable } from '#shared/storage/database.ts';
import type { SessionStore } from '../port/session-store.ts';

export function sessionRows(database: Queryable): SessionStore {
  return {
    async load(sessionIds) {
      const { rows } = await database.query<SessionRow>(LOAD, [sessionIds]);
      return rows.map(({ id, p, head, record, snapshot, is_deleted: isDeleted }) => ({ id, partition: p, head, record, snapshot, isDeleted }));
    },

    async messages(sessionId, upToOffset, limit) {
      const { rows } = await database.query<{ body: ConversationEvent }>(MESSAGES, [sessionId, upToOffset, limit]);
      return rows.map((row) => row.body).reverse();
    },

    async event(sessionId, eventId) {
      const { rows } = await database.query<{ body: ConversationEvent }>(EVENT, [sessionId, eventId]);
      return rows[0]?.body ?? null;
    },

    async cut(sessionId, minOffset) {
      const { rows } = await database.query<{ off: number | null; split_at: number | null }>(CUT, [sessionId, minOffset]);
      const { off = null, split_at: splitAt = null } = rows[0] ?? {};
      return off === null ? null : { offset: Number(off), splitAt: splitAt === null ? null : Number(splitAt) };
    },
  };
}

interface SessionRow {
  id: string;
  p: number;
  head: number;
  snapshot: unknown;
  record: SessionRecord;
  is_deleted: boolean;
}

const LOAD: NamedStatement = {
  name: 'load-sessions',
  text: 'select id, p, head, snapshot, record, deleted_at is not null as is_deleted from sessions where id = any($1::text[])',
};

const MESSAGES: NamedStatement = {
  name: 'load-history',
  text: `select body from events where session_id = $1 and off <= $2 and deleted_at is null
    and kind in ('user_message', 'assistant_message', 'preamble', 'tool') order by off desc limit $3`,
};

/** Within one session, which the primary key begins with. */
const EVENT: NamedStatement = {
  name: 'load-event',
  text: 'select body from events where session_id = $1 and id = $2 and deleted_at is null',
};

/**
 * Reads the session's events once, by the primary key: no index has traces, and deletions are rare. Turns whose messages came in one trace of a caller are told
 * apart by the `ready` that ends each, unless the next one begins right behind it: its message stands in the turn before, where it has waited.
 */
const CUT: NamedStatement = {
  name: 'load-cut',
  text: `select min(off) filter (where off >= $2::bigint) as off,
      min(off) filter (where off >= $2::bigint and turn_begins_at < $2::bigint) as split_at
    from (
      select off, min(off) over (partition by trace_id, turns_before) as turn_begins_at from (
        select off, trace_id, count(*) filter (where status = 'ready' and next_status is distinct from 'acknowledged')
            over (partition by trace_id order by off rows between unbounded preceding and 1 preceding) as turns_before
          from (
            select off, trace_id, status, lead(status) over (partition by trace_id order by off) as next_status from (
              select off, trace_id, case when kind = 'status' and source = 'ai_agent' then body ->> 'status' end as status
                from events where session_id = $1 and deleted_at is null
            ) as read
          ) as marked
      ) as counted
    ) as found`,
};
