import type { Clock } from '#shared/clock.ts';
import type { Database } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { MemoryBusLimits } from './limits.ts';

/** Dependencies of every component of the embedded driver. */
export interface ComponentDeps {
  database: Database;
  clock: Clock;
  log: Log;
  limits: MemoryBusLimits;
}

/** How a component closes: first all readers stop, then all writes. */
export interface Closable {
  /** Stops readers, refuses new ones; resolves when no handler is running. Writes still pass: running handlers need them. */
  stopReaders(): Promise<void>;
  /** Refuses later calls with `bus.closed`; resolves when no write is in flight. */
  shut(): Promise<void>;
}

export interface Bounded {
  /** False from four fifths of the limits. */
  hasCapacity(): boolean;
}
