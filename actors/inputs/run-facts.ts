import type { SessionCommand } from '#bus/messages/session.ts';
import { type ListedTool, listedTool } from '#bus/messages/tool.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import { compileSchema } from '#shared/json-schema.ts';
import type { Queryable } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { runActor } from '../kinds/run/actor.ts';
import { sessionActor } from '../kinds/session/actor.ts';
import { type SessionState, stateIn } from '../runtime/apply/session-state.ts';
import type { StepMessage } from '../tool-loop/types.ts';
import type { ActorInputs, AutonomousRoutine, RunFacts } from './actor-inputs.ts';

/** Runs whose stored facts are cached, mostly those in progress. Evicting one costs a read. */
const MAX_RUNS = 256;
/** JSON parsed in one tick, some 5 ms. A batch may start 128 runs with inputs of 1 MiB: parsed at once they would make heartbeats late. */
const MAX_PARSED_PER_TICK = 256 * 1_024;
/** Tool lists that are cached. They change only when a tool server does. */
const MAX_LISTS = 256;

interface RunFactsDeps {
  database: Queryable;
  bundleOf(hash: string): Promise<Bundle>;
  log: Log;
}

interface RunRow {
  id: string;
  session_id: string;
  customer_id: string;
  ephemeral: boolean;
  routine_id: string;
  bundle_hash: string;
  /** JSON, as text. */
  input: string;
  metadata: string | null;
  callback_url: string | null;
  trace_id: string;
  traceparent: string | null;
  timeout_ms: number;
  expires_at: Date;
  created_at: Date;
}

/** Reads what transitions of runs need besides snapshots. Caches what is immutable. */
export class RunFactsReader {
  readonly #deps: RunFactsDeps;
  readonly #runs = new Map<string, RunFacts>();
  readonly #lists = new Map<string, readonly ListedTool[]>();

  constructor(deps: RunFactsDeps) {
    this.#deps = deps;
  }

  /** Omits runs without a row. */
  async runs(ids: ReadonlySet<string>): Promise<Map<string, RunFacts>> {
    if (ids.size === 0) return new Map();
    const missing = [...ids].filter((id) => !this.#runs.has(id));
    if (missing.length > 0) {
      const { rows } = await this.#deps.database.query<RunRow>(SELECT_RUNS, [missing]);
      let parsed = 0;
      for (const row of rows) {
        parsed += row.input.length + (row.metadata?.length ?? 0);
        this.#runs.set(row.id, await this.#factsOf(row));
        if (parsed < MAX_PARSED_PER_TICK) continue;
        parsed = 0;
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
    const found = pick(this.#runs, ids);
    evictOldest(this.#runs, MAX_RUNS);
    return found;
  }

  /** Not cached: the only thing about a run that changes. */
  async settled(ids: readonly string[]): Promise<Set<string>> {
    if (ids.length === 0) return new Set();
    const { rows } = await this.#deps.database.query<{ id: string }>(SELECT_SETTLED, [ids]);
    return new Set(rows.map((row) => row.id));
  }

  async superseded(effectIds: readonly string[]): Promise<Set<string>> {
    if (effectIds.length === 0) return new Set();
    const { rows } = await this.#deps.database.query<{ id: string }>(SELECT_SUPERSEDED, [effectIds]);
    return new Set(rows.map((row) => row.id));
  }

  /** Omits lists that are missing or unreadable. */
  async lists(hashes: ReadonlySet<string>): Promise<Map<string, readonly ListedTool[]>> {
    if (hashes.size === 0) return new Map();
    const missing = [...hashes].filter((hash) => !this.#lists.has(hash));
    if (missing.length > 0) {
      const { rows } = await this.#deps.database.query<{ hash: string; tools: unknown }>(SELECT_LISTS, [missing]);
      for (const { hash, tools } of rows) {
        const read = listedTool.array().safeParse(tools);
        if (read.success) this.#lists.set(hash, read.data);
        else this.#deps.log.error({ err: read.error, list: hash }, 'a stored tool list could not be read');
      }
    }
    const found = pick(this.#lists, hashes);
    evictOldest(this.#lists, MAX_LISTS);
    return found;
  }

  /** By run and number. @param from by run: the first number */
  async staged(from: ReadonlyMap<string, number>): Promise<Map<string, Map<number, StepMessage>>> {
    const found = new Map<string, Map<number, StepMessage>>();
    if (from.size === 0) return found;
    const { rows } = await this.#deps.database.query<{ run_id: string; seq: number; message: StepMessage }>(SELECT_STAGED, [
      [...from.keys()],
      [...from.values()],
    ]);
    for (const row of rows) {
      const messages = found.get(row.run_id) ?? new Map<number, StepMessage>();
      found.set(row.run_id, messages.set(row.seq, row.message));
    }
    return found;
  }

  async #factsOf(row: RunRow): Promise<RunFacts> {
    const bundle = await this.#bundleOf(row);
    const routine = bundle?.documents.routines.find((one): one is AutonomousRoutine => one.kind === 'autonomous' && one.id === row.routine_id) ?? null;
    const checks = this.#checksOf(row, routine);
    return {
      id: row.id,
      sessionId: row.session_id,
      customerId: row.customer_id,
      ephemeral: row.ephemeral,
      routineId: row.routine_id,
      bundleHash: row.bundle_hash,
      metadata: row.metadata === null ? null : (JSON.parse(row.metadata) as Record<string, unknown>),
      callbackUrl: row.callback_url,
      traceId: row.trace_id,
      traceparent: row.traceparent,
      timeoutMs: row.timeout_ms,
      expiresAtMs: row.expires_at.getTime(),
      createdAtMs: row.created_at.getTime(),
      bundle: checks === null ? null : bundle,
      routine: checks === null ? null : routine,
      inputViolation: checks?.inputViolation ?? null,
      checkOutput: checks?.checkOutput ?? uncheckable,
    };
  }

  /** Null when a schema can't be used, though an older release could: fails the run, not the host. */
  #checksOf({ id, input }: RunRow, routine: AutonomousRoutine | null): Pick<RunFacts, 'inputViolation' | 'checkOutput'> | null {
    try {
      return { inputViolation: checker(routine?.input_schema)(JSON.parse(input)), checkOutput: checker(routine?.output_schema) };
    } catch (error) {
      this.#deps.log.error({ err: error, run_id: id }, 'a schema of a run could not be used');
      return null;
    }
  }

  /** Null when unreadable: fails the run, not its partition. Throws other errors, such as an unavailable database. */
  async #bundleOf({ id, bundle_hash: hash }: RunRow): Promise<Bundle['body'] | null> {
    try {
      return (await this.#deps.bundleOf(hash)).body;
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'config.invalid')) throw error;
      this.#deps.log.error({ err: error, run_id: id, bundle: hash }, 'the configuration of a run could not be read');
      return null;
    }
  }
}

/** Sessions without runs cause no query. */
export async function readRunFacts(
  reader: RunFactsReader,
  commands: readonly SessionCommand[],
  states: ReadonlyMap<string, SessionState | null>,
): Promise<Pick<ActorInputs, 'runOf' | 'isSettled' | 'isSuperseded' | 'toolsOf' | 'stagedOf'>> {
  const named = commands.flatMap((command) => (command.type === 'run.start' ? [command.runId] : command.type === 'run.deadline' ? [command.actorId] : []));
  const failed = commands.flatMap((command) => (command.type === 'delivery.reported' && command.outcome === 'failed' ? [command.callId] : []));
  const runIds = new Set(named);
  const hashes = new Set<string>();
  const stagedFrom = new Map<string, number>();
  for (const command of commands) {
    const state = states.get(command.sessionId) ?? null;
    if (state === null) continue;
    for (const runId of stateIn(state, sessionActor)?.context.queue ?? []) runIds.add(runId);
    const context = stateIn(state, runActor)?.context ?? null;
    if (context === null) continue;
    runIds.add(context.runId);
    for (const hash of Object.values(context.lists)) hashes.add(hash);
    // The reply that asked for the batch, and its results so far.
    if (context.batch.length > 0) stagedFrom.set(context.runId, Math.max(0, context.stepCount - context.batch.length - 1));
  }
  // Batches of turns alone.
  if (runIds.size === 0 && failed.length === 0) return noRuns;
  const [runs, settled, superseded, lists, staged] = await Promise.all([
    reader.runs(runIds),
    reader.settled(named),
    reader.superseded(failed),
    reader.lists(hashes),
    reader.staged(stagedFrom),
  ]);
  return {
    runOf: (runId) => runs.get(runId) ?? null,
    isSettled: (runId) => settled.has(runId),
    isSuperseded: (effectId) => superseded.has(effectId),
    toolsOf: (hash) => lists.get(hash) ?? null,
    stagedOf: (runId) => staged.get(runId) ?? new Map(),
  };
}

const noRuns: Pick<ActorInputs, 'runOf' | 'isSettled' | 'isSuperseded' | 'toolsOf' | 'stagedOf'> = {
  runOf: () => null,
  isSettled: () => false,
  isSuperseded: () => false,
  toolsOf: () => null,
  stagedOf: () => new Map(),
};

/** Fails the run: an unchecked output must not pass. */
function uncheckable(): never {
  throw new TypeError('the output schema of the run can not be used');
}

function checker(schema: Record<string, unknown> | undefined): RunFacts['checkOutput'] {
  return schema === undefined ? () => null : compileSchema(schema);
}

function pick<Value>(all: ReadonlyMap<string, Value>, keys: ReadonlySet<string>): Map<string, Value> {
  const found = new Map<string, Value>();
  for (const key of keys) {
    const value = all.get(key);
    if (value !== undefined) found.set(key, value);
  }
  return found;
}

function evictOldest(all: Map<string, unknown>, most: number): void {
  for (const key of all.keys()) {
    if (all.size <= most) return;
    all.delete(key);
  }
}

const SELECT_RUNS = {
  name: 'load-runs',
  text: `select id, session_id, customer_id, ephemeral, routine_id, bundle_hash, input::text as input, metadata::text as metadata, callback_url, trace_id,
      traceparent, timeout_ms, expires_at, created_at
    from runs where id = any($1::text[])`,
};
const SELECT_SETTLED = { name: 'settled-runs', text: `select id from runs where id = any($1::text[]) and state in ('succeeded', 'failed')` };
const SELECT_SUPERSEDED = { name: 'superseded-effects', text: `select id from effects where id = any($1::text[]) and state = 'superseded'` };
const SELECT_LISTS = { name: 'load-tool-lists', text: 'select hash, tools from tool_lists where hash = any($1::text[])' };
const SELECT_STAGED = {
  name: 'load-staged',
  text: `select steps.run_id, steps.seq, steps.message from steps join unnest($1::text[], $2::int[]) as i (run_id, seq)
    on steps.run_id = i.run_id and steps.seq >= i.seq`,
};
