import { setTimeout as delay } from 'node:timers/promises';
import type { Bus } from '#bus/bus.ts';
import type { Clock } from '#shared/clock.ts';
import { ulid } from '#shared/ids.ts';
import type { Database } from '#shared/storage/database.ts';
import { isTransientError } from '#shared/storage/transient-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { acquireLease, isLeased, releaseLease } from './lease.ts';
import { type StaleKind, staleKinds } from './stale-rows.ts';

/** Customers' commands have priority. */
const PAUSE_MS = 100;
/** Batches per kind, ten million rows; the next sweep goes on. */
const MAX_BATCHES = 20_000;
/** Tries while the store is unreachable; the next sweep tries again. */
const MAX_TRIES = 5;
const RETRY_MS = 30_000;
/** A stop does not wait longer for the running statement; the database finishes it. */
const STOP_WITHIN_MS = 1_000;
/** Renewed before each batch. */
const LEASE_MS = 60_000;
const LEASE_KEY = 'stale-store-sweep';
/** From the end of a host's sweep to its next one. */
const EVERY_MS = 24 * 60 * 60 * 1_000;
/** A lease that a finished sweep takes: repeated sweeps of all hosts wait until it expires, somewhat before the next one of the host that swept. */
const TURN_KEY = 'stale-store-turn';
const TURN_SHARE = 0.9;

export interface StaleStoreDeps {
  config: {
    delayMs: number;
    /** Of settled runs, tombstones, closed effects and dead letters. */
    retentionMs: number;
    pauseMs?: number;
    retryMs?: number;
    everyMs?: number;
  };
  bus: Pick<Bus, 'commands' | 'hasCapacity'>;
  database: Database;
  clock: Clock;
  log: Log;
}

/** Rows deleted, or commands sent to owners, by kind. */
export type Swept = Record<StaleKind['name'], number>;

/**
 * Sweeps the store after the start, and once a day from then on: rows left behind by a lost report or timer, and rows past their retention. `swept` is of the
 * first sweep: null when another host sweeps, on a stop, and on a failure, which is logged.
 */
export function startStaleStoreSweep(deps: StaleStoreDeps): { swept: Promise<Swept | null>; stop(): Promise<void> } {
  const { delayMs, everyMs = EVERY_MS } = deps.config;
  const turn = { key: TURN_KEY, owner: ulid(), ms: everyMs * TURN_SHARE };
  const stopping = new AbortController();
  const { signal } = stopping;
  const sweepIn = async (ms: number, isDue: () => Promise<boolean>) => {
    try {
      await delay(ms, undefined, { signal, ref: false });
      if (!(await isDue())) return null;
      const swept = await sweepWithRetries(deps, signal);
      if (swept !== null) await acquireLease(deps.database, turn);
      return swept;
    } catch (error) {
      if (!signal.aborted) deps.log.warn({ err: error }, 'the store could not be swept; the next sweep tries again');
      return null;
    }
  };
  const swept = sweepIn(delayMs, async () => true);
  const finished = (async () => {
    await swept;
    while (!signal.aborted) await sweepIn(everyMs, async () => !(await isLeased(deps.database, TURN_KEY)));
  })();
  return {
    swept,
    stop: async () => {
      stopping.abort();
      await Promise.race([finished, delay(STOP_WITHIN_MS, undefined, { ref: false })]);
    },
  };
}

/** Idempotent: a sweep that broke off starts anew. */
async function sweepWithRetries(deps: StaleStoreDeps, signal: AbortSignal): Promise<Swept | null> {
  const sweepId = ulid();
  for (let tries = 1; ; tries += 1) {
    try {
      return await sweep(deps, sweepId, signal);
    } catch (error) {
      if (signal.aborted || tries === MAX_TRIES || !isTransientError(error)) throw error;
      deps.log.warn({ err: error }, 'the store could not be swept; retrying');
      await delay(deps.config.retryMs ?? RETRY_MS, undefined, { signal });
    }
  }
}

async function sweep({ config, bus, database, clock, log }: StaleStoreDeps, sweepId: string, signal: AbortSignal): Promise<Swept | null> {
  // Two sweeps at once are harmless.
  const lease = { key: LEASE_KEY, owner: sweepId, ms: LEASE_MS };
  if (!(await acquireLease(database, lease))) {
    log.info({}, 'another host sweeps the store');
    return null;
  }
  const kinds = staleKinds({ bus, database, clock, sweepId, retentionMs: config.retentionMs, signal });
  const swept = Object.fromEntries(kinds.map(({ name }) => [name, 0])) as Swept;
  try {
    for (const kind of kinds) {
      for (let batches = 0; batches < MAX_BATCHES; batches += 1) {
        signal.throwIfAborted();
        // After a long pause another host may have the lease.
        if (!(await acquireLease(database, lease))) return null;
        const { count, isLast } = await kind.next();
        swept[kind.name] += count;
        if (isLast) break;
        await delay(config.pauseMs ?? PAUSE_MS, undefined, { signal });
      }
    }
  } finally {
    await releaseLease(database, lease).catch((error: unknown) =>
      log.warn({ err: error }, 'the lease of the sweep could not be released; it expires by itself'),
    );
  }
  log.info(swept, 'the store was swept');
  return swept;
}
