import { setTimeout as delay } from 'node:timers/promises';
import type { Log } from '../telemetry/log.ts';
import type { Database } from './database.ts';
import { migrate } from './migrate.ts';
import { isTransientError } from './transient-error.ts';

/** A database that starts answers within seconds. */
const RETRY_MS = 1_000;
/** After a refusal, which only an operator ends: no process depends on its speed. */
const REFUSED_RETRY_MS = 30_000;
/** Short, since closing the database waits for the statement; another try follows. */
const LOCK_TIMEOUT_MS = 5_000;

interface Options {
  database: Database;
  log: Log;
  retryMs?: number;
  /** After `storage.schema_refused`, and after an error that is no transient one. */
  refusedRetryMs?: number;
}

/** Never rejects. `stop` ends the tries; one that is under way is finished. */
export interface BackgroundMigration {
  /** Resolves after the first try, whatever came of it. */
  firstTry: Promise<void>;
  stop(): Promise<void>;
}

/** For a process that starts without its database: migrates once the database can be reached. A refused migration is logged, and tried again. */
export function migrateInBackground({ database, log, retryMs = RETRY_MS, refusedRetryMs = REFUSED_RETRY_MS }: Options): BackgroundMigration {
  const stopped = new AbortController();
  let pauseMs = retryMs;
  const isMigrated = async (): Promise<boolean> => {
    try {
      const applied = await migrate(database, undefined, { lockTimeoutMs: LOCK_TIMEOUT_MS });
      if (applied.length > 0) log.info({ migrations: applied }, 'the schema of the database was migrated');
      return true;
    } catch (error) {
      const isTransient = isTransientError(error);
      // The driver logs an unreachable server.
      if (!isTransient) log.error({ err: error }, 'the schema of the database could not be migrated; it is tried again');
      pauseMs = isTransient ? retryMs : refusedRetryMs;
      return false;
    }
  };
  const first = isMigrated();
  const migrating = first.then(async (isDone) => {
    for (let done = isDone; !done && !stopped.signal.aborted; ) {
      await delay(pauseMs, undefined, { signal: stopped.signal, ref: false }).catch(() => {});
      done = stopped.signal.aborted || (await isMigrated());
    }
  });
  return {
    firstTry: first.then(() => {}),
    async stop() {
      stopped.abort();
      await migrating;
    },
  };
}
