import type { NamedStatement, QueryResult } from '../../shared/storage/database.ts';
import { type ModelTables, type Row, read } from './model-rows.ts';
import type { Withdrawal } from './model-store.ts';
import { sessionOfLetter } from './session-of-letter.ts';

type Execute = (parameters: readonly unknown[]) => Row[];

const ACCEPTED_COLUMNS = [
  ...['id', 'p', 'session_id', 'customer_id', 'ephemeral', 'routine_id', 'idempotency_key', 'bundle_hash', 'input', 'metadata', 'callback_url'],
  ...['trace_id', 'timeout_ms', 'expires_at', 'created_at'],
] as const;
const PLACES = ACCEPTED_COLUMNS.map((_, index) => `$${index + 1}`).join(', ');

/** By column: what a gateway inserts. */
export type AcceptedRow = Record<(typeof ACCEPTED_COLUMNS)[number], unknown>;

/** Statements of the simulation itself, for its gateway and its tool server. */
export const acceptRun: NamedStatement = {
  name: 'accept-run',
  text: `insert into runs (${ACCEPTED_COLUMNS.join(', ')}, state) values (${PLACES}, 'accepted')`,
};
export const storeTools: NamedStatement = { name: 'store-tools', text: 'insert into tool_lists (hash, tools, created_at) values ($1, $2, now())' };

export const storeToolServer: NamedStatement = {
  name: 'store-tool-server',
  text: `insert into tool_servers (bundle_hash, server_id, list_hash, state, checked_at) values ($1, $2, $3, 'ready', now())`,
};

export function acceptedValues(run: AcceptedRow): unknown[] {
  return ACCEPTED_COLUMNS.map((column) => run[column]);
}

const DELIVERY_COLUMNS = ['run_id', 'url', 'host_allowlist', 'bundle_hash', 'body', 'traceparent', 'attempts', 'created_at', 'state'];

/** The database as workers and the gateway use it: their statements, by name. The runtime uses the port of its store (model-store.ts). */
export class ModelDatabase {
  readonly #statements: ReadonlyMap<string, Execute>;

  constructor(tables: ModelTables, nowMs: () => number, withdrawal: Withdrawal = 'binding') {
    this.#statements = new Map(Object.entries({ ...ofWorkers(tables, nowMs, withdrawal), ...ofOthers(tables, nowMs) }));
  }

  /** @throws TypeError for a statement that is not modelled, so that a new one is noticed */
  execute(statement: string | NamedStatement, parameters: readonly unknown[]): QueryResult<Row> {
    const execute = typeof statement === 'string' ? undefined : this.#statements.get(statement.name);
    if (execute === undefined) throw new TypeError(`the model has no such statement: ${typeof statement === 'string' ? statement : statement.name}`);
    const rows = execute(parameters);
    return { rows, rowCount: rows.length };
  }
}

function ofWorkers(tables: ModelTables, nowMs: () => number, withdrawal: Withdrawal): Record<string, Execute> {
  return {
    effect_state: ([id]) => {
      const rows = tables.effects.get(id as string) ?? [];
      return [{ open: rows.length === 0 ? null : rows.some(({ state }) => state === 'open') }];
    },
    effect_worker_delivery: ([id]) => (tables.deliveries.get(id as string) ?? []).slice(0, 1).map((row) => read(row, DELIVERY_COLUMNS, 'deliveries')),
    effect_worker_attempt: ([id, most, countedBy]) => {
      const isCounted = (row: Row) => row['counted_by'] === countedBy;
      const rows = (tables.deliveries.get(id as string) ?? []).filter(
        (row) => row['state'] === 'open' && ((row['attempts'] as number) < (most as number) || isCounted(row)),
      );
      for (const row of rows) Object.assign(row, { attempts: (row['attempts'] as number) + (isCounted(row) ? 0 : 1), counted_by: countedBy });
      return rows.map((row) => read(row, ['attempts']));
    },
    effect_worker_events: ([session, from, to, kinds, limit]) => {
      const rows = [...(tables.events.get(session as string)?.values() ?? [])].filter((row) => {
        const off = row['off'] as number;
        return (
          row['deleted_at'] === null &&
          off >= (from as number) &&
          off < (to as number) &&
          (kinds === null || (kinds as string[]).includes(row['kind'] as string))
        );
      });
      // Small: the limit of bytes is never reached.
      const inOrder = rows.sort((left, right) => (left['off'] as number) - (right['off'] as number)).slice(0, limit as number);
      return inOrder.map((row) => ({ off: row['off'], body: row['body'] }));
    },
    effect_worker_claim: ([id, claimant]) => {
      const claim = tables.claims.get(id as string);
      if (claim !== undefined && claim['claimant'] === claimant) return [{}];
      if (claim !== undefined && !(claim['withdrawn'] === true && withdrawal === 'overridden')) return [];
      tables.claims.set(id as string, { effect_id: id, claimed_at: new Date(nowMs()), withdrawn: false, claimant });
      return [{}];
    },
    effect_worker_claimed: ([id]) => (tables.claims.has(id as string) ? [{ one: 1 }] : []),
    'store-dead-letter': ([id, p, source, reason, body, session]) => {
      if ((tables.sessions.get(session as string)?.['deleted_at'] ?? null) !== null) return [];
      if (tables.deadLetters.some((row) => row['id'] === id && row['source'] === source)) return [];
      tables.deadLetters.push({ id, p, source, reason, body, session_id: sessionOfLetter(source, body), created_at: new Date(nowMs()) });
      return [];
    },
    'read-bundle': ([hash]) => {
      const row = tables.bundles.get(hash as string);
      return row === undefined ? [] : [read(row, ['body'])];
    },
  };
}

function ofOthers(tables: ModelTables, nowMs: () => number): Record<string, Execute> {
  return {
    'store-bundle': ([hash, body]) => {
      tables.bundles.delete(hash as string);
      tables.bundles.set(hash as string, { hash, body });
      return [];
    },
    // The model of the runtime's store has them already.
    'store-evaluation': () => [],
    [storeTools.name]: ([hash, tools]) => {
      tables.toolLists.set(hash as string, { hash, tools, created_at: new Date(nowMs()), unused_since: null });
      return [];
    },
    [storeToolServer.name]: ([bundle_hash, server_id, list_hash]) => {
      tables.toolServers.push({ bundle_hash, server_id, list_hash, state: 'ready', checked_at: new Date(nowMs()) });
      return [];
    },
    [acceptRun.name]: (values) => {
      const row = acceptedRow();
      for (const [index, column] of ACCEPTED_COLUMNS.entries()) row[column] = values[index];
      tables.runs.set(row['id'] as string, row);
      return [];
    },
    'agent-gateway-accept-delivery': (values) => acceptDelivery(tables, nowMs(), values),
    'agent-gateway-delivery': ([key]) => {
      const matched = tables.webhookDeliveries.get(key as string)?.['matched'] as string[] | undefined;
      if (matched === undefined) return [];
      const ofRoutine = (routineId: string) => [...tables.runs.values()].find((run) => run['routine_id'] === routineId && run['idempotency_key'] === key);
      const rows = matched.map((routineId) => {
        const run = ofRoutine(routineId);
        return { matched, routine_id: run === undefined ? routineId : run['routine_id'], id: run?.['id'] ?? null, state: run?.['state'] ?? null };
      });
      return rows.length > 0 ? rows : [{ matched, routine_id: null, id: null, state: null }];
    },
  };
}

function acceptedRow(): Row {
  return { state: 'accepted', traceparent: null, output: null, error: null, started_at: null, completed_at: null };
}

/** The delivery and its runs, or nothing when it was stored before. */
function acceptDelivery(tables: ModelTables, nowMs: number, values: readonly unknown[]): Row[] {
  const [key, webhook, matched, ids, partitions, sessions, customers, routines, traces, parents, timeouts, bundle_hash, input, metadata, maxMs] = values;
  if (tables.webhookDeliveries.has(key as string)) return [];
  const created_at = new Date(nowMs);
  tables.webhookDeliveries.set(key as string, { key, webhook, matched, received_at: created_at });
  const at = (list: unknown, index: number) => (list as unknown[])[index];
  const stored = (ids as string[]).flatMap((id, index) => {
    const routine_id = at(routines, index);
    if ([...tables.runs.values()].some((run) => run['routine_id'] === routine_id && run['idempotency_key'] === key)) return [];
    tables.runs.set(id, {
      ...acceptedRow(),
      ...{ id, p: at(partitions, index), session_id: at(sessions, index), customer_id: at(customers, index), ephemeral: true, routine_id },
      ...{ idempotency_key: key, bundle_hash, input, metadata, callback_url: null, trace_id: at(traces, index), traceparent: at(parents, index) },
      ...{ timeout_ms: at(timeouts, index), expires_at: new Date(nowMs + (maxMs as number)), created_at },
    });
    return [{ id, created_at }];
  });
  return stored.length > 0 ? stored : [{ id: null, created_at: null }];
}
