import type { Clock } from '../clock.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { NamedStatement, Queryable } from './database.ts';

/** Quartz drifts by some milliseconds a minute; a clock that is set is noticed within this time. */
const READ_EVERY_MS = 10_000;
/** A slower reading is dropped unless it is the first: its error is up to half of that. */
const MAX_READING_MS = 2_000;
/** With NTP clocks differ by milliseconds. */
const MAX_SKEW_MS = 5_000;

export interface DatabaseClockDeps {
  database: Queryable;
  log: Log;
  metrics: Metrics;
  /** This process's clock. */
  clock: Clock;
  /** A monotonic clock in milliseconds. */
  elapsedMs?: () => number;
}

/** A clock that shows the database's time. */
export interface DatabaseClock extends Clock {
  /** Also called every 10 s. Rejects with the database's error. */
  read(): Promise<void>;
  stop(): void;
}

/**
 * The database's time, for deadlines and timers, which processes compare with each other. It advances by a monotonic clock between readings, and
 * while the database is unreachable. A skew of the process's own clock above 5 s is logged and shown in `switchyard_clock_skew_seconds`.
 * @throws the database's error when the first reading fails
 */
export async function openDatabaseClock({ database, log, metrics, clock, elapsedMs = () => performance.now() }: DatabaseClockDeps): Promise<DatabaseClock> {
  /** Database time minus `elapsedMs`; null before the first reading. */
  let offsetMs: number | null = null;
  let loggedSkewMs = 0;

  const nowMs = () => (offsetMs ?? 0) + elapsedMs();
  const logSkew = () => {
    const skewMs = clock.nowMs() - nowMs();
    // Once per skew, until the clock is right again or the skew has changed.
    const isRight = Math.abs(skewMs) <= MAX_SKEW_MS;
    if (isRight ? loggedSkewMs === 0 : Math.abs(skewMs - loggedSkewMs) <= MAX_SKEW_MS) return;
    loggedSkewMs = isRight ? 0 : skewMs;
    const facts = { skew_ms: Math.round(skewMs) };
    if (isRight) log.info(facts, "the clock of this process agrees with the database's again");
    else
      log.warn(
        facts,
        "the clock of this process differs from the database's by more than 5 s: its logs and traces have wrong times. Deadlines go by the database's clock",
      );
  };
  const read = async () => {
    const sentAtMs = elapsedMs();
    const { rows } = await database.query<{ now_ms: number }>(READ_CLOCK);
    const tookMs = elapsedMs() - sentAtMs;
    const [row] = rows;
    if (row === undefined || (tookMs > MAX_READING_MS && offsetMs !== null)) return;
    // The server read its clock while the statement was in flight. An offset within the bounds stays, so that the time does not jump at each
    // reading.
    const earliest = row.now_ms - (sentAtMs + tookMs);
    const latest = row.now_ms - sentAtMs;
    if (offsetMs === null || offsetMs < earliest || offsetMs > latest) offsetMs = (earliest + latest) / 2;
    logSkew();
  };
  await read();
  const timer = setInterval(() => {
    // A failing database is reported by its other callers.
    read().catch(() => {});
  }, READ_EVERY_MS).unref();
  const unwatch = metrics.watch('clockSkewSeconds', () => [{ labels: {}, value: (clock.nowMs() - nowMs()) / 1_000 }]);
  return {
    nowMs: () => Math.floor(nowMs()),
    read,
    stop: () => {
      clearInterval(timer);
      unwatch();
    },
  };
}

const READ_CLOCK: NamedStatement = { name: 'database-clock', text: 'select extract(epoch from clock_timestamp())::float8 * 1000 as now_ms' };
