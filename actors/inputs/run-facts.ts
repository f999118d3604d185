import { LRUCache } from 'lru-cache';
import type { SessionCommand } from '#bus/messages/session.ts';
import { type ListedTool, listedTool } from '#bus/messages/tool.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import { compileSchema } from '#shared/json-schema.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { runActor } from '../kinds/run/actor.ts';
import { sessionActor } from '../kinds/session/actor.ts';
import { type SessionState, stateIn } from '../runtime/apply/session-state.ts';
import type { EffectStore } from '../store/port/effect-store.ts';
import type { RunStore, StoredRun } from '../store/port/run-store.ts';
import type { StepMessage } from '../tool-loop/types.ts';
import type { ActorInputs, AutonomousRoutine, RunFacts } from './actor-inputs.ts';

/** Runs whose stored facts are cached, mostly those in progress. Evicting one costs a read. */
const MAX_RUNS = 256;
/** JSON parsed in one tick, some 5 ms. A batch may start 128 runs with inputs of 1 MiB: parsed at once they would make heartbeats late. */
const MAX_PARSED_PER_TICK = 256 * 1_024;
/** Tool lists that are cached. They change only when a tool server does. */
const MAX_LISTS = 256;

interface RunFactsDeps {
  store: { runs: Omit<RunStore, 'unstarted'>; effects: Pick<EffectStore, 'superseded' | 'withdrawUnclaimed'> };
  bundleOf(hash: string): Promise<Bundle>;
  log: Log;
}

/** Reads what transitions of runs need besides snapshots. Caches what is immutable. */
export class RunFactsReader {
  readonly #deps: RunFactsDeps;
  readonly #runs = new LRUCache<string, RunFacts>({ max: MAX_RUNS });
  readonly #lists = new LRUCache<string, readonly ListedTool[]>({ max: MAX_LISTS });

  constructor(deps: RunFactsDeps) {
    this.#deps = deps;
  }

  /** Omits runs without a row. */
  async runs(ids: ReadonlySet<string>): Promise<Map<string, RunFacts>> {
    if (ids.size === 0) return new Map();
    const found = cachedOf(this.#runs, ids);
    const missing = [...ids].filter((id) => !found.has(id));
    if (missing.length > 0) {
      let parsed = 0;
      for (const run of await this.#deps.store.runs.load(missing)) {
        parsed += run.input.length + (run.metadata?.length ?? 0);
        const facts = await this.#factsOf(run);
        this.#runs.set(run.id, facts);
        found.set(run.id, facts);
        if (parsed < MAX_PARSED_PER_TICK) continue;
        parsed = 0;
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
    return found;
  }

  /** Not cached: the only thing about a run that changes. */
  async settled(ids: readonly string[]): Promise<Set<string>> {
    return ids.length === 0 ? new Set() : this.#deps.store.runs.settled(ids);
  }

  async superseded(effectIds: readonly string[]): Promise<Set<string>> {
    return effectIds.length === 0 ? new Set() : this.#deps.store.effects.superseded(effectIds);
  }

  /** Before the commit that cancels them, so that it knows all that have begun. A host that dies between the two leaves this to the next one. */
  async withdrawUnclaimed(effectIds: readonly string[]): Promise<Set<string>> {
    return effectIds.length === 0 ? new Set() : this.#deps.store.effects.withdrawUnclaimed(effectIds);
  }

  /** Omits lists that are missing or unreadable. */
  async lists(hashes: ReadonlySet<string>): Promise<Map<string, readonly ListedTool[]>> {
    if (hashes.size === 0) return new Map();
    const found = cachedOf(this.#lists, hashes);
    const missing = [...hashes].filter((hash) => !found.has(hash));
    if (missing.length > 0) {
      for (const [hash, tools] of await this.#deps.store.runs.toolLists(missing)) {
        const read = listedTool.array().safeParse(tools);
        if (read.success) {
          this.#lists.set(hash, read.data);
          found.set(hash, read.data);
        } else this.#deps.log.error({ err: read.error, list: hash }, 'a stored tool list could not be read');
      }
    }
    return found;
  }

  /** By run and number. @param from by run: the first number */
  async staged(from: ReadonlyMap<string, number>): Promise<Map<string, Map<number, StepMessage>>> {
    return from.size === 0 ? new Map() : this.#deps.store.runs.staged(from);
  }

  async #factsOf({ input, metadata, ...run }: StoredRun): Promise<RunFacts> {
    const bundle = await this.#bundleOf(run);
    const routine = bundle?.documents.routines.find((one): one is AutonomousRoutine => one.kind === 'autonomous' && one.id === run.routineId) ?? null;
    const checks = this.#checksOf(run.id, input, routine);
    return {
      ...run,
      metadata: metadata === null ? null : (JSON.parse(metadata) as Record<string, unknown>),
      bundle: checks === null ? null : bundle,
      routine: checks === null ? null : routine,
      inputViolation: checks?.inputViolation ?? null,
      checkOutput: checks?.checkOutput ?? uncheckable,
    };
  }

  /** Null when a schema can't be used, though an older release could: fails the run, not the host. */
  #checksOf(id: string, input: string, routine: AutonomousRoutine | null): Pick<RunFacts, 'inputViolation' | 'checkOutput'> | null {
    try {
      return { inputViolation: checker(routine?.input_schema)(JSON.parse(input)), checkOutput: checker(routine?.output_schema) };
    } catch (error) {
      this.#deps.log.error({ err: error, run_id: id }, 'a schema of a run could not be used');
      return null;
    }
  }

  /** Null when unreadable: fails the run, not its partition. Throws other errors, such as an unavailable database. */
  async #bundleOf({ id, bundleHash: hash }: Pick<StoredRun, 'id' | 'bundleHash'>): Promise<Bundle['body'] | null> {
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
): Promise<Pick<ActorInputs, 'runOf' | 'isSettled' | 'isSuperseded' | 'isClaimed' | 'toolsOf' | 'stagedOf'>> {
  const named = commands.flatMap((command) => runNamedBy(command) ?? []);
  const failed = commands.flatMap((command) => (command.type === 'delivery.reported' && command.outcome === 'failed' ? [command.callId] : []));
  const runIds = new Set(named);
  const hashes = new Set<string>();
  const stagedFrom = new Map<string, number>();
  const pending: string[] = [];
  for (const command of commands) {
    if (command.type === 'tools.listed') for (const hash of Object.values(command.lists)) hashes.add(hash);
    const state = states.get(command.sessionId) ?? null;
    if (state === null) continue;
    for (const runId of stateIn(state, sessionActor)?.context.queue ?? []) runIds.add(runId);
    const context = stateIn(state, runActor)?.context ?? null;
    if (context === null) continue;
    runIds.add(context.runId);
    for (const hash of Object.values(context.lists)) hashes.add(hash);
    if (command.type === 'run.cancel' && command.runId === context.runId) pending.push(...context.pending.map(({ callId }) => callId));
    // The reply that asked for the batch, and its results so far.
    if (context.batch.length > 0) stagedFrom.set(context.runId, Math.max(0, context.stepCount - context.batch.length - 1));
  }
  // Batches of turns alone.
  if (runIds.size === 0 && failed.length === 0) return noRuns;
  const [runs, settled, superseded, claimed, lists, staged] = await Promise.all([
    reader.runs(runIds),
    reader.settled(named),
    reader.superseded(failed),
    reader.withdrawUnclaimed(pending),
    reader.lists(hashes),
    reader.staged(stagedFrom),
  ]);
  return {
    runOf: (runId) => runs.get(runId) ?? null,
    isSettled: (runId) => settled.has(runId),
    isSuperseded: (effectId) => superseded.has(effectId),
    isClaimed: (effectId) => claimed.has(effectId),
    toolsOf: (hash) => lists.get(hash) ?? null,
    stagedOf: (runId) => staged.get(runId) ?? new Map(),
  };
}

const noRuns: Pick<ActorInputs, 'runOf' | 'isSettled' | 'isSuperseded' | 'isClaimed' | 'toolsOf' | 'stagedOf'> = {
  runOf: () => null,
  isSettled: () => false,
  isSuperseded: () => false,
  isClaimed: () => false,
  toolsOf: () => null,
  stagedOf: () => new Map(),
};

/** Null for commands that name no run, or only the one in progress. */
function runNamedBy(command: SessionCommand): string | null {
  if (command.type === 'run.deadline') return command.actorId;
  return command.type === 'run.start' || command.type === 'run.cancel' ? command.runId : null;
}

/** Fails the run: an unchecked output must not pass. */
function uncheckable(): never {
  throw new TypeError('the output schema of the run can not be used');
}

function checker(schema: Record<string, unknown> | undefined): RunFacts['checkOutput'] {
  return schema === undefined ? () => null : compileSchema(schema);
}

function cachedOf<Value extends object>(all: LRUCache<string, Value>, keys: ReadonlySet<string>): Map<string, Value> {
  const found = new Map<string, Value>();
  for (const key of keys) {
    const value = all.get(key);
    if (value !== undefined) found.set(key, value);
  }
  return found;
}
