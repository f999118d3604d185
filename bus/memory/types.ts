import type { Clock } from '#shared/clock.ts';
import type { Database } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { MemoryBusLimits } from './limits.ts';

/** What every part of the embedded driver is made with. */
export interface ComponentDeps {
  database: Database;
  clock: Clock;
  log: Log;
  limits: MemoryBusLimits;
}

/** How a part ends: first its readers, once those of all parts have stopped its writes. */
export interface Closable {
  /** Takes no new readers, stops the ones it has, and resolves when no handler is running. Writes still pass: handlers in hand need them. */
  stopReaders(): Promise<void>;
  /** Refuses every later call with `bus.closed` and resolves when all writes in flight have ended. */
  shut(): Promise<void>;
}

/** A part whose store can fill up. */
export interface Bounded {
  /** False once it is four fifths full. */
  hasCapacity(): boolean;
}
