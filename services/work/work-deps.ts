import type { Bus } from '#bus/bus.ts';
import type { Clock } from '#shared/clock.ts';
import type { Database } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';
import type { Tracing } from '#shared/telemetry/tracing.ts';
import type { RunningItems } from './running-items.ts';

/** What settling an item needs. */
export interface WorkDeps {
  bus: Bus;
  /** Has the state of effects. */
  database: Database;
  clock: Clock;
  log: Log;
  metrics: Metrics;
  tracing: Tracing;
  /** Of all kinds of the worker. */
  running: RunningItems;
}
