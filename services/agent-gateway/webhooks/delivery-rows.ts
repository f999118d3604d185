import { type RunEnvelope, runStatus } from '#shared/contracts/agent/run.ts';
import type { NamedStatement, Queryable } from '#shared/storage/database.ts';
import type { NewRun } from '../run-rows.ts';

/** A delivery to a webhook of the manifest, as accepted. */
export interface NewDelivery {
  /** Also the idempotency key of its runs. */
  key: string;
  webhook: string;
  /** Ids of the routines that it is for, in the manifest's order. */
  matched: readonly string[];
}

/** What became of an accepted delivery. */
export interface StoredDelivery {
  matched: string[];
  /** Those that are still kept, in the order of `matched`. */
  runs: Pick<RunEnvelope, 'routine_id' | 'run_id' | 'status'>[];
}

/** Deliveries to webhooks of the manifest, with their runs. */
export class DeliveryRows {
  readonly #database: Queryable;

  constructor(database: Queryable) {
    this.#database = database;
  }

  /**
   * Stores the delivery and its runs, or nothing of both, in one statement.
   * @param runs whose key is the delivery's; one that its routine has already is left out
   * @returns the insertion time of each stored run by its id, by the database's clock; null: the delivery was stored before
   */
  async accept({ key, webhook, matched }: NewDelivery, runs: readonly NewRun[]): Promise<Map<string, Date> | null> {
    const [first] = runs;
    const { rows } = await this.#database.query<AcceptedRow>(INSERT, [
      key,
      webhook,
      matched,
      runs.map(({ id }) => id),
      runs.map(({ partition }) => partition),
      runs.map(({ sessionId }) => sessionId),
      runs.map(({ customerId }) => customerId),
      runs.map(({ routineId }) => routineId),
      runs.map(({ traceId }) => traceId),
      runs.map(({ traceparent }) => traceparent),
      runs.map(({ timeoutMs }) => timeoutMs),
      first?.bundleHash ?? null,
      // The same for all: it is sent once.
      first === undefined ? null : JSON.stringify(first.input),
      first === undefined ? null : JSON.stringify(first.metadata),
      first?.maxTimeoutMs ?? null,
    ]);
    if (rows.length === 0) return null;
    return new Map(rows.flatMap(({ id, created_at: createdAt }) => (id === null || createdAt === null ? [] : [[id, createdAt]])));
  }

  /** Null: there is no such delivery. */
  async byKey(key: string): Promise<StoredDelivery | null> {
    const { rows } = await this.#database.query<StoredRow>(SELECT, [key]);
    const [first] = rows;
    if (first === undefined) return null;
    const runs = rows.flatMap(({ routine_id, id, state }) =>
      routine_id === null || id === null ? [] : [{ routine_id, run_id: id, status: runStatus.parse(state) }],
    );
    return { matched: first.matched, runs };
  }
}

interface AcceptedRow {
  id: string | null;
  created_at: Date | null;
}

interface StoredRow {
  matched: string[];
  routine_id: string | null;
  id: string | null;
  state: string | null;
}

const INSERT: NamedStatement = {
  name: 'agent-gateway-accept-delivery',
  // Of two inserts of a delivery the second waits for the first to commit, then stores nothing. A delivery without runs gives one row of nulls.
  text: `with delivery as (
      insert into webhook_deliveries (key, webhook, matched, received_at) values ($1, $2, $3::text[], now()) on conflict (key) do nothing returning key),
    stored as (
      insert into runs (id, p, session_id, customer_id, ephemeral, routine_id, idempotency_key, bundle_hash, state, input, metadata, callback_url,
        trace_id, traceparent, timeout_ms, expires_at, created_at)
      select r.id, r.p, r.session_id, r.customer_id, true, r.routine_id, $1, $12, 'accepted', $13::json, $14::json, null,
        r.trace_id, r.traceparent, r.timeout_ms, date_trunc('milliseconds', now()) + make_interval(secs => $15::float8 / 1000), date_trunc('milliseconds', now())
      from delivery, unnest($4::text[], $5::int[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::bigint[])
        as r (id, p, session_id, customer_id, routine_id, trace_id, traceparent, timeout_ms)
      on conflict (routine_id, idempotency_key) do nothing returning id, created_at)
    select stored.id, stored.created_at from delivery left join stored on true`,
};

const SELECT: NamedStatement = {
  name: 'agent-gateway-delivery',
  text: `select d.matched, m.routine_id, runs.id, runs.state
    from webhook_deliveries d
      left join lateral unnest(d.matched) with ordinality as m (routine_id, position) on true
      left join runs on runs.routine_id = m.routine_id and runs.idempotency_key = d.key
    where d.key = $1 order by m.position`,
};
