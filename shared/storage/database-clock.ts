import type { Clock } from '../clock.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { NamedStatement, Queryable } from './database.ts';

/** Between two readings. Quartz drifts by some milliseconds a minute; a clock that is set anew is noticed within this time. */
const READ_EVERY_MS = 10_000;
/** A reading that took longer says too little: it is off by up to half of that. */
const MAX_READING_MS = 2_000;
/** Timestamps and logs of machines with NTP differ by milliseconds. What differs by more than this has none, or was set by hand. */
const MAX_SKEW_MS = 5_000;

export interface DatabaseClockDeps {
  database: Queryable;
  log: Log;
  metrics: Metrics;
  /** The clock of this process, compared with the database's. */
  clock: Clock;
  /** Milliseconds of any clock that only goes forwards. */
  elapsedMs?: () => number;
}

export interface DatabaseClock extends Clock {
  /** Reads the database's clock anew; called every ten seconds. Rejects with the database's error. */
  read(): Promise<void>;
  stop(): void;
}

/**
 * The time of the database, for what processes compare with each other: deadlines and timers. Between two readings it goes on with a clock
 * that nothing sets. While the database is away it goes on from the last reading. A process whose own clock differs by more than five
 * seconds says so in its log, again when the difference has changed by as much, and in `switchyard_clock_skew_seconds`.
 * @throws the database's error when the first reading fails
 */
export async function openDatabaseClock({ database, log, metrics, clock, elapsedMs = () => performance.now() }: DatabaseClockDeps): Promise<DatabaseClock> {
  /** The database's time less `elapsedMs`; null before the first reading. */
  let offsetMs: number | null = null;
  let loggedSkewMs = 0;

  const nowMs = () => (offsetMs ?? 0) + elapsedMs();
  const logSkew = () => {
    const skewMs = clock.nowMs() - nowMs();
    // The last warning holds until the clock is right again, or wrong by another amount.
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
    // It was read at some moment while the statement was under way. An offset that fits is kept: a jump at each reading would be noise.
    const earliest = row.now_ms - (sentAtMs + tookMs);
    const latest = row.now_ms - sentAtMs;
    if (offsetMs === null || offsetMs < earliest || offsetMs > latest) offsetMs = (earliest + latest) / 2;
    logSkew();
  };
  await read();
  const timer = setInterval(() => {
    // A database that is away is told of by those who need it.
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
