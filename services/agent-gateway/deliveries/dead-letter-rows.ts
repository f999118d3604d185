import type { DeadLetterRecord, DeadLetterSource } from '#shared/contracts/agent/deliveries.ts';
import type { NamedStatement, Queryable } from '#shared/storage/database.ts';
import { behind, microsOf, pageParameters, type TimePosition } from './time-cursor.ts';

/** A dead letter with its content. */
export interface StoredLetter {
  id: string;
  source: DeadLetterSource;
  partition: number | null;
  body: string;
  /** In microseconds: the newest of one id and source. */
  atMicros: number;
}

interface DeliveryOfLetter {
  sessionId: string;
  traceparent: string | null;
  state: 'open' | 'delivered' | 'dead';
  /** The letter is still there, and none was stored since. */
  hasLetter: boolean;
}

interface ListedRow {
  id: string;
  source: DeadLetterSource;
  reason: string;
  begin: string;
  session_id: string | null;
  created_at: Date;
  at_micros: number;
  key: string;
}

/** Those that are the agent's. */
const OWN = `source in ('command', 'delivery', 'event', 'tool') or (source = 'call' and p is not null)`;
/** A letter of a delivery has no content, and its row says the session. */
const SESSION = /"sessionId":"([A-Za-z0-9_-]{1,128})"/;
/** Messages begin with their ids. */
const BEGIN_CHARACTERS = 2_048;

/** Rows of dead letters: owners and workers write them, and a replay removes them. */
export class DeadLetterRows {
  readonly #database: Queryable;

  constructor(database: Queryable) {
    this.#database = database;
  }

  /** Newest first. @param source null: all. @returns one row more than `limit`, when there are more */
  async list(source: DeadLetterSource | null, after: TimePosition | null, limit: number): Promise<ListedRow[]> {
    const { rows } = await this.#database.query<ListedRow>(SELECT_PAGE, [source, ...pageParameters(after, limit)]);
    return rows;
  }

  /** The newest of each source with this id. */
  async find(id: string): Promise<StoredLetter[]> {
    const { rows } = await this.#database.query<StoredLetter>(SELECT_BY_ID, [id]);
    return rows;
  }

  async has(id: string): Promise<boolean> {
    return (await this.find(id)).length > 0;
  }

  /** With older ones. What was stored since it was found stays: its replay has failed already. */
  async remove({ id, source, atMicros }: Pick<StoredLetter, 'id' | 'source' | 'atMicros'>): Promise<void> {
    await this.#database.query(DELETE, [id, source, atMicros]);
  }

  /** Opens a dead delivery again, with all its attempts, if this is its newest letter. */
  async reopen({ id, atMicros }: StoredLetter): Promise<void> {
    await this.#database.query(REOPEN, [id, atMicros]);
  }

  /** The delivery of a letter; null: there is none. */
  async delivery({ id, atMicros }: StoredLetter): Promise<DeliveryOfLetter | null> {
    const { rows } = await this.#database.query<DeliveryOfLetter>(SELECT_DELIVERY, [id, atMicros]);
    return rows[0] ?? null;
  }

  async hasEvent(sessionId: string, offset: number): Promise<boolean> {
    const { rows } = await this.#database.query(SELECT_EVENT, [sessionId, offset]);
    return rows.length > 0;
  }
}

/** What can be replayed with the rights of a gateway. */
export function isReplayable(source: DeadLetterSource): boolean {
  return source === 'command' || source === 'delivery' || source === 'event';
}

export function deadLetterOf({ id, source, reason, begin, session_id: sessionId, created_at: createdAt }: ListedRow): DeadLetterRecord {
  return {
    id,
    source,
    session_id: sessionId ?? SESSION.exec(begin)?.[1] ?? null,
    reason,
    created_at: createdAt.toISOString(),
    replayable: isReplayable(source),
  };
}

const SELECT_PAGE: NamedStatement = {
  name: 'agent-gateway-dead-letters',
  text: `select l.id, l.source, l.reason, l.begin, l.created_at, l.at_micros, l.key, d.session_id from (
      select id, source, reason, left(body, ${BEGIN_CHARACTERS}) as begin, created_at, ${microsOf('created_at')} as at_micros, source || ' ' || id as key
      from dead_letters
      where (${OWN}) and ($1::text is null or source = $1) and ${behind('created_at', `source || ' ' || id`, '$2', '$3')}
      order by created_at desc, key limit $4::int) l
    left join deliveries d on l.source = 'delivery' and d.id = l.id order by l.created_at desc, l.key`,
};

const SELECT_BY_ID: NamedStatement = {
  name: 'agent-gateway-dead-letter',
  text: `select distinct on (source) id, source, p as partition, body, (extract(epoch from created_at) * 1000000)::float8 as "atMicros"
    from dead_letters where id = $1 and (${OWN}) order by source, created_at desc`,
};

const DELETE: NamedStatement = {
  name: 'agent-gateway-remove-dead-letter',
  text: `delete from dead_letters where id = $1 and source = $2 and ${microsOf('created_at')} <= $3::float8`,
};

/** Whether the newest letter of delivery $1 is that of $2. */
const IS_NEWEST = `(select max(${microsOf('created_at')}) from dead_letters l where l.id = $1 and l.source = 'delivery') = $2::float8`;

const REOPEN: NamedStatement = {
  name: 'agent-gateway-reopen-delivery',
  text: `update deliveries set state = 'open', attempts = 0, settled_at = null where id = $1 and state = 'dead' and ${IS_NEWEST}`,
};

const SELECT_EVENT: NamedStatement = {
  name: 'agent-gateway-has-event',
  text: 'select 1 as one from events where session_id = $1 and off = $2 and deleted_at is null',
};

const SELECT_DELIVERY: NamedStatement = {
  name: 'agent-gateway-delivery-of-letter',
  text: `select session_id as "sessionId", traceparent, state, coalesce(${IS_NEWEST}, false) as "hasLetter" from deliveries where id = $1`,
};
