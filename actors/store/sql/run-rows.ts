import type { NamedStatement, Queryable } from '#shared/storage/database.ts';
import type { StepMessage } from '../../tool-loop/types.ts';
import type { RunStore } from '../port/run-store.ts';

export function runRows(database: Queryable): RunStore {
  const messages = async (statement: string, parameters: readonly unknown[]) => {
    const { rows } = await database.query<{ message: StepMessage }>(statement, parameters);
    return rows.map((row) => row.message);
  };
  return {
    async load(runIds) {
      const { rows } = await database.query<RunRow>(LOAD, [runIds]);
      return rows.map((row) => ({
        id: row.id,
        sessionId: row.session_id,
        customerId: row.customer_id,
        ephemeral: row.ephemeral,
        routineId: row.routine_id,
        bundleHash: row.bundle_hash,
        input: row.input,
        metadata: row.metadata,
        callbackUrl: row.callback_url,
        traceId: row.trace_id,
        traceparent: row.traceparent,
        timeoutMs: row.timeout_ms,
        expiresAtMs: row.expires_at.getTime(),
        createdAtMs: row.created_at.getTime(),
      }));
    },

    async settled(runIds) {
      const { rows } = await database.query<{ id: string }>(SETTLED, [runIds]);
      return new Set(rows.map((row) => row.id));
    },

    async unstarted(partitions, { minAgeMs, limit }) {
      const { rows } = await database.query<UnstartedRow>(UNSTARTED, [partitions, minAgeMs, limit]);
      return rows.map(({ id, p: partition, session_id: sessionId, traceparent, created_at: createdAt }) => {
        return { id, partition, sessionId, traceparent, createdAtMs: createdAt.getTime() };
      });
    },

    transcript: (runId, below) => messages(TRANSCRIPT, [runId, below]),
    assistantMessages: (runId) => messages(ASSISTANT_MESSAGES, [runId]),

    async staged(from) {
      const { rows } = await database.query<{ run_id: string; seq: number; message: StepMessage }>(STAGED, [[...from.keys()], [...from.values()]]);
      const found = new Map<string, Map<number, StepMessage>>();
      for (const row of rows) {
        const staged = found.get(row.run_id) ?? new Map<number, StepMessage>();
        found.set(row.run_id, staged.set(row.seq, row.message));
      }
      return found;
    },

    async toolLists(hashes) {
      const { rows } = await database.query<{ hash: string; tools: unknown }>(TOOL_LISTS, [hashes]);
      return new Map(rows.map((row) => [row.hash, row.tools]));
    },
  };
}

interface RunRow {
  id: string;
  session_id: string;
  customer_id: string;
  ephemeral: boolean;
  routine_id: string;
  bundle_hash: string;
  input: string;
  metadata: string | null;
  callback_url: string | null;
  trace_id: string;
  traceparent: string | null;
  timeout_ms: number;
  expires_at: Date;
  created_at: Date;
}

interface UnstartedRow {
  id: string;
  p: number;
  session_id: string;
  traceparent: string | null;
  created_at: Date;
}

const LOAD: NamedStatement = {
  name: 'load-runs',
  text: `select id, session_id, customer_id, ephemeral, routine_id, bundle_hash, input::text as input, metadata::text as metadata, callback_url, trace_id,
      traceparent, timeout_ms, expires_at, created_at
    from runs where id = any($1::text[])`,
};

const SETTLED: NamedStatement = { name: 'settled-runs', text: `select id from runs where id = any($1::text[]) and state in ('succeeded', 'failed')` };

const UNSTARTED: NamedStatement = {
  name: 'lost-starts',
  text: `select id, p, session_id, traceparent, created_at from runs
    where state = 'accepted' and p = any($1::int[]) and created_at <= now() - make_interval(secs => $2::float8 / 1000)
      and not exists (select 1 from seen where seen.session_id = runs.session_id and seen.command_id = runs.id)
    order by created_at limit $3`,
};

const TRANSCRIPT = 'select message from steps where run_id = $1 and seq < $2 order by seq';

/** Matched as text, since `->>` parses the whole message and refuses NUL and lone surrogates. */
const ASSISTANT_MESSAGES = `select message from steps where run_id = $1 and message::text like '{"role":"assistant"%' order by seq desc`;

const STAGED: NamedStatement = {
  name: 'load-staged',
  text: `select steps.run_id, steps.seq, steps.message from steps join unnest($1::text[], $2::int[]) as i (run_id, seq)
    on steps.run_id = i.run_id and steps.seq >= i.seq`,
};

const TOOL_LISTS: NamedStatement = { name: 'load-tool-lists', text: 'select hash, tools from tool_lists where hash = any($1::text[])' };
