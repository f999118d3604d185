import type { RunEnvelope, RunRecord } from '#shared/contracts/agent/run.ts';
import { runStatus } from '#shared/contracts/agent/run.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { NamedStatement, Queryable } from '#shared/storage/database.ts';
import { limits } from './limits.ts';

/** A run at its acceptance. Later only the owner of its partition changes the row. */
export interface NewRun {
  id: string;
  partition: number;
  sessionId: string;
  customerId: string;
  /** Session and customer are created for this run alone. */
  ephemeral: boolean;
  routineId: string;
  /** Without a key of the caller's: the run's id. */
  idempotencyKey: string;
  bundleHash: string;
  input: Record<string, unknown>;
  metadata: Record<string, unknown> | null;
  /** Null: it has no callback. */
  callbackUrl: string | null;
  traceId: string;
  traceparent: string | null;
  timeoutMs: number;
  /** The run settles at most this long after its acceptance. */
  maxTimeoutMs: number;
}

/** The last row of a page. */
export interface RunPosition {
  /** The column's precision: other writers may use all of it. */
  createdAtMicros: number;
  runId: string;
}

interface RunFilter {
  routineId: string | null;
  status: RunEnvelope['status'] | null;
}

/** The runs table: inserts accepted runs, reads their state. */
export class RunRows {
  readonly #database: Queryable;

  constructor(database: Queryable) {
    this.#database = database;
  }

  /** @returns the insertion time by the database's clock; null: the routine has a run with this key */
  async accept(run: NewRun): Promise<Date | null> {
    const { rows } = await this.#database.query<{ created_at: Date }>(INSERT_RUN, [
      run.id,
      run.partition,
      run.sessionId,
      run.customerId,
      run.ephemeral,
      run.routineId,
      run.idempotencyKey,
      run.bundleHash,
      JSON.stringify(run.input),
      run.metadata === null ? null : JSON.stringify(run.metadata),
      run.callbackUrl,
      run.traceId,
      run.traceparent,
      run.timeoutMs,
      run.maxTimeoutMs,
    ]);
    return rows[0]?.created_at ?? null;
  }

  async byKey(routineId: string, idempotencyKey: string): Promise<RunEnvelope | null> {
    const { rows } = await this.#database.query<EnvelopeRow>(SELECT_BY_KEY, [routineId, idempotencyKey]);
    return rows[0] === undefined ? null : envelopeOf(rows[0]);
  }

  /**
   * The run that another request has stored first. Rows are kept for weeks, so it exists unless a clock was far off.
   * @throws `service.no_answer` when it does not
   */
  async winnerOf(routineId: string, idempotencyKey: string): Promise<RunEnvelope> {
    const winner = await this.byKey(routineId, idempotencyKey);
    if (winner === null) throw new SwitchyardError('service.no_answer', 'the run with this idempotency_key has just been deleted; send the request again');
    return winner;
  }

  async byId(runId: string): Promise<RunRecord | null> {
    const { rows } = await this.#database.query<RunRow>(SELECT_BY_ID, [runId]);
    return rows[0] === undefined ? null : recordOf(rows[0]);
  }

  /** Newest first, up to `limit` or 4 MiB. `next` is null on the last page. */
  async list({ routineId, status }: RunFilter, after: RunPosition | null, limit: number): Promise<{ runs: RunRecord[]; next: RunPosition | null }> {
    const parameters = [routineId, status, after?.createdAtMicros ?? null, after?.runId ?? null, limit + 1, limits.pageBytes];
    const { rows } = await this.#database.query<ListedRow>(SELECT_PAGE, parameters);
    const page = rows.slice(0, limit);
    const last = page.at(-1);
    const isLast = last === undefined || page.length === last.matched;
    return { runs: page.map(recordOf), next: isLast ? null : { createdAtMicros: last.created_at_micros, runId: last.id } };
  }
}

interface EnvelopeRow {
  id: string;
  routine_id: string;
  state: string;
  session_id: string;
  created_at: Date;
}

interface RunRow extends EnvelopeRow {
  output: unknown;
  error: unknown;
  started_at: Date | null;
  completed_at: Date | null;
  trace_id: string;
  metadata: unknown;
}

interface ListedRow extends RunRow {
  created_at_micros: number;
  /** Rows without the byte limit; limit + 1 when there are more. */
  matched: number;
}

function envelopeOf({ id, routine_id, state, session_id, created_at }: EnvelopeRow): RunEnvelope {
  return { run_id: id, routine_id, status: runStatus.parse(state), session_id, created_at: created_at.toISOString() };
}

function recordOf(row: RunRow): RunRecord {
  return {
    ...envelopeOf(row),
    output: row.output,
    error: row.error,
    started_at: row.started_at?.toISOString() ?? null,
    completed_at: row.completed_at?.toISOString() ?? null,
    trace_id: row.trace_id,
    metadata: row.metadata,
  };
}

const INSERT_RUN: NamedStatement = {
  name: 'agent-gateway-accept-run',
  // By the database's clock, as the hosts' timers and the deadline.
  text: `insert into runs (id, p, session_id, customer_id, ephemeral, routine_id, idempotency_key, bundle_hash, state, input, metadata, callback_url,
      trace_id, traceparent, timeout_ms, expires_at, created_at)
    values ($1, $2, $3, $4, $5, $6, $7, $8, 'accepted', $9::json, $10::json, $11, $12, $13, $14,
      date_trunc('milliseconds', now()) + make_interval(secs => $15::float8 / 1000), date_trunc('milliseconds', now()))
    on conflict (routine_id, idempotency_key) do nothing returning created_at`,
};

const ENVELOPE = 'id, routine_id, state, session_id, created_at';
const RECORD = `${ENVELOPE}, output, error, started_at, completed_at, trace_id, metadata`;

const SELECT_BY_KEY: NamedStatement = {
  name: 'agent-gateway-run-by-key',
  text: `select ${ENVELOPE} from runs where routine_id = $1 and idempotency_key = $2`,
};

const SELECT_BY_ID: NamedStatement = { name: 'agent-gateway-run', text: `select ${RECORD} from runs where id = $1` };

const SELECT_PAGE: NamedStatement = {
  name: 'agent-gateway-runs',
  // The first run is always returned, however large. The first condition on created_at is redundant: it is for the index.
  text: `select * from (
      select *, count(*) over ()::int as matched, sum(size) over (order by created_at desc, id) - size as bytes_before
      from (
        select ${RECORD}, (extract(epoch from created_at) * 1000000)::bigint as created_at_micros,
          coalesce(octet_length(output::text), 0) + coalesce(octet_length(error::text), 0) + coalesce(octet_length(metadata::text), 0) as size
        from runs
        where ($1::text is null or routine_id = $1) and ($2::text is null or state = $2)
          and ($3::bigint is null or created_at <= timestamptz 'epoch' + $3::bigint * interval '1 microsecond')
          and ($3::bigint is null or created_at < timestamptz 'epoch' + $3::bigint * interval '1 microsecond' or id > $4::text)
        order by created_at desc, id limit $5::int) wanted) sized
    where bytes_before < $6::bigint order by created_at desc, id`,
};
