import type { CommitStore } from '../../actors/store/port/commit-store.ts';
import type { RuntimeStore } from '../../actors/store/runtime-store.ts';
import { bundleBody } from '../../shared/config/bundle-body.ts';
import type { BundleStore } from '../../shared/config/bundle-store.ts';
import { comparingEvaluations } from './engine-bundle.ts';
import { commit, type Fence } from './model-commit.ts';
import { rowsOf } from './model-commit-rows.ts';
import { hostsOf, partitionsOf } from './model-ownership.ts';
import { customersOf, effectsOf, runsOf, sessionsOf, timersOf, turnsOf } from './model-reads.ts';
import type { ModelTables, Row } from './model-rows.ts';

/** A call of a method of the port. */
export interface StoreCall {
  /** Path of the method: `commits.commit`. */
  name: string;
  args: readonly unknown[];
}

/** Sends a call to the store: executed now, later or never; its reply may get lost. */
export type Request = (call: StoreCall, execute: () => unknown) => Promise<unknown>;

/** The methods as the store executes them: at once, one after the other. */
export type Executed<Part> = {
  [Name in keyof Part]: Part[Name] extends (...args: infer Args) => Promise<infer Result> ? (...args: Args) => Result : never;
};

/**
 * What becomes of the claims that a cancellation inserts for calls that no worker has claimed: each binds (the design), or one of two planted faults: the owner
 * reads the claims and inserts none, or a worker claims a withdrawn call all the same.
 */
export type Withdrawal = 'binding' | 'read only' | 'overridden';

export interface StoreModel {
  tables: ModelTables;
  /** The store's clock. */
  nowMs(): number;
  fence: Fence;
  withdrawal?: Withdrawal;
}

export const FULL_FENCE: Fence = { owner: true, epoch: true, commitNo: true };

/** The second driver of the runtime's store: its state in memory, shared by the drivers of all processes. */
export function modelStore({ tables, nowMs, fence, withdrawal }: StoreModel, request: Request): RuntimeStore {
  const over = <Part extends object>(part: string, executed: Executed<Part>): Part => {
    const methods = Object.entries<(...args: unknown[]) => unknown>(executed as never);
    const entries = methods.map(([name, execute]) => {
      return [name, (...args: unknown[]) => request({ name: `${part}.${name}`, args }, () => execute(...args))];
    });
    return Object.fromEntries(entries) as Part;
  };
  return {
    commits: {
      ...over<Omit<CommitStore, 'commit'>>('commits', { processed: (commands) => processed(tables, commands) }),
      commit(plan) {
        const rows = rowsOf(plan);
        return request({ name: 'commits.commit', args: [plan] }, () => committed(tables, rows, fence, nowMs())) as ReturnType<CommitStore['commit']>;
      },
    },
    partitions: over('partitions', partitionsOf(tables, nowMs)),
    hosts: over('hosts', hostsOf(tables, nowMs)),
    sessions: over('sessions', sessionsOf(tables)),
    timers: over('timers', timersOf(tables)),
    effects: over('effects', effectsOf(tables, nowMs, withdrawal)),
    runs: over('runs', runsOf(tables, nowMs)),
    turns: over('turns', turnsOf(tables)),
    customers: over('customers', customersOf(tables)),
    bundles: over<BundleStore>('bundles', {
      read: (hash) => {
        const row = tables.bundles.get(hash);
        return row === undefined ? null : { hash, body: bundleBody.parse(JSON.parse(row['body'] as string)) };
      },
      newestHash: () => [...tables.bundles.keys()].at(-1) ?? null,
    }),
    // Those of one agent, from the beginning.
    evaluations: over<RuntimeStore['evaluations']>('evaluations', {
      read: (hashes) => new Map(comparingEvaluations.flatMap((row) => (hashes.includes(row.hash) ? [[row.hash, row] as const] : []))),
      newestSet: (of) => comparingEvaluations.find(({ result }) => (result as { of?: string }).of === of)?.hash ?? null,
    }),
    sweep: () => request({ name: 'sweep', args: [] }, () => sweep(tables, nowMs())) as Promise<void>,
  };
}

function committed(tables: ModelTables, rows: ReturnType<typeof rowsOf>, fence: Fence, nowMs: number): Awaited<ReturnType<CommitStore['commit']>> {
  try {
    return { kind: 'committed', owned: commit(tables, rows, fence, nowMs) };
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === '23505') return { kind: 'repeated', error };
    throw error;
  }
}

function processed(tables: ModelTables, commands: Parameters<CommitStore['processed']>[0]): Awaited<ReturnType<CommitStore['processed']>> {
  return commands.flatMap(({ sessionId, commandId }) => {
    const row = tables.seen.get(`${sessionId} ${commandId}`);
    return row === undefined ? [] : [{ sessionId, commandId, reply: JSON.parse((row['answer'] as string | null) ?? 'null') }];
  });
}

/** No row gets old enough to be swept here. */
function sweep(tables: ModelTables, nowMs: number): void {
  for (const row of tables.toolLists.values() as Iterable<Row>) {
    const isUsed = tables.toolServers.some((server) => server['list_hash'] === row['hash']);
    row['unused_since'] = isUsed ? null : (row['unused_since'] ?? new Date(nowMs));
  }
}
