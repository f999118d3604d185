import { setTimeout as delay } from 'node:timers/promises';
import type { Bus } from '#bus/bus.ts';
import type { Clock } from '#shared/clock.ts';
import { ulid } from '#shared/ids.ts';
import type { Database } from '#shared/storage/database.ts';
import { isTransientError } from '#shared/storage/transient-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { type StaleKind, staleKinds } from './stale-rows.ts';

/** Between two batches: customers' work goes first. */
const PAUSE_MS = 100;
/** Batches of one kind; ten million rows are more than a sweep should have to look at, and the next goes on. */
const MAX_BATCHES = 20_000;
/** A store that is away is waited for, a few times; the next start sweeps again. */
const MAX_TRIES = 5;
const TRY_AGAIN_MS = 30_000;
/** A stop waits no longer for the statement in hand: its database finishes it before it closes. */
const STOP_WITHIN_MS = 1_000;
/** Who sweeps renews it before each batch; another host may sweep once it is over. */
const LEASE_MS = 60_000;
const LEASE_KEY = 'stale-store-sweep';

export interface StaleStoreDeps {
  config: {
    /** From the start of the host, which is then ready. */
    delayMs: number;
    /** How long settled runs, deleted sessions' tombstones, closed effects and dead letters are kept. */
    retentionMs: number;
    /** Other than usual in tests. */
    pauseMs?: number;
    tryAgainMs?: number;
  };
  bus: Pick<Bus, 'commands' | 'hasCapacity'>;
  database: Database;
  clock: Clock;
  log: Log;
}

/** How many of each kind were taken away, or given to their owners. */
export type Swept = Record<StaleKind['name'], number>;

/**
 * Sweeps the store once, some time after the start: what a lost report or timer has left behind, and what is older than it is kept.
 * `swept` is what came of it: null when another host sweeps, when it was stopped, and when it failed, which the log tells.
 */
export function startStaleStoreSweep(deps: StaleStoreDeps): { swept: Promise<Swept | null>; stop(): Promise<void> } {
  const stopping = new AbortController();
  const { signal } = stopping;
  const swept = (async () => {
    await delay(deps.config.delayMs, undefined, { signal });
    return await sweepWithRetries(deps, signal);
  })().catch((error: unknown) => {
    if (!signal.aborted) deps.log.warn({ err: error }, 'the store could not be swept; the next start tries again');
    return null;
  });
  return {
    swept,
    stop: async () => {
      stopping.abort();
      await Promise.race([swept, delay(STOP_WITHIN_MS, undefined, { ref: false })]);
    },
  };
}

/** All of it can be done twice, so a sweep that broke off begins anew. */
async function sweepWithRetries(deps: StaleStoreDeps, signal: AbortSignal): Promise<Swept | null> {
  const sweepId = ulid();
  for (let tries = 1; ; tries += 1) {
    try {
      return await sweep(deps, sweepId, signal);
    } catch (error) {
      if (signal.aborted || tries === MAX_TRIES || !isTransientError(error)) throw error;
      deps.log.warn({ err: error }, 'the store could not be swept; it is tried again');
      await delay(deps.config.tryAgainMs ?? TRY_AGAIN_MS, undefined, { signal });
    }
  }
}

async function sweep({ config, bus, database, clock, log }: StaleStoreDeps, sweepId: string, signal: AbortSignal): Promise<Swept | null> {
  if (!(await acquireLease(database, sweepId))) {
    log.info({}, 'another host sweeps the store');
    return null;
  }
  const swept: Swept = { overdue_runs: 0, orphaned_sessions: 0, old_runs: 0, old_tombstones: 0, old_effects: 0, old_dead_letters: 0 };
  try {
    for (const kind of staleKinds({ bus, database, clock, sweepId, retentionMs: config.retentionMs, signal })) {
      for (let batches = 0; batches < MAX_BATCHES; batches += 1) {
        signal.throwIfAborted();
        // A host that was away for long finds that another has taken over.
        if (!(await acquireLease(database, sweepId))) return null;
        const { count, isLast } = await kind.next();
        swept[kind.name] += count;
        if (isLast) break;
        await delay(config.pauseMs ?? PAUSE_MS, undefined, { signal });
      }
    }
  } finally {
    await releaseLease(database, sweepId).catch((error: unknown) => log.warn({ err: error }, 'the sweep’s lease could not be given back; it ends by itself'));
  }
  log.info(swept, 'the store was swept');
  return swept;
}

/**
 * One replica sweeps. A row with an end, and not an advisory lock: that would be held by a connection or a transaction, which would have
 * to stay open for as long as a sweep takes, and idle transactions are ended. If two ever sweep at once, as when a batch outlasts the
 * lease, they do the same twice, and that is harmless.
 */
async function acquireLease(database: Database, sweepId: string): Promise<boolean> {
  const { rowCount } = await database.query(
    `insert into meta (key, value) values ($1, json_build_object('sweep', $2::text, 'until', now() + make_interval(secs => $3::float8 / 1000))::text)
     on conflict (key) do update set value = excluded.value
     where meta.value::json->>'sweep' = $2::text or (meta.value::json->>'until')::timestamptz < now()`,
    [LEASE_KEY, sweepId, LEASE_MS],
  );
  return rowCount > 0;
}

async function releaseLease(database: Database, sweepId: string): Promise<void> {
  await database.query(`delete from meta where key = $1 and value::json->>'sweep' = $2::text`, [LEASE_KEY, sweepId]);
}
