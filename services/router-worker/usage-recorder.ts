import { setTimeout as pause } from 'node:timers/promises';
import type { UsageLog } from '#bus/bus.ts';
import { type UsageRecord, usageRecordText } from '#bus/messages/usage.ts';
import { Deadlines } from '#shared/deadlines.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { failPoint } from '#shared/fail-points.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';

/** Doubled after each failure. */
const FIRST_RETRY_MS = 100;
const LONGEST_RETRY_MS = 5_000;
/** Within this time nearly all records are stored. */
const AT_ONCE_MS = 1_000;
/** Of all records: a timer for each costs more than the record's text. */
const deadlines = new Deadlines();

interface RecorderDeps {
  usage: Pick<UsageLog, 'append'>;
  log: Log;
  metrics: Metrics;
}

interface Waiting {
  /** How long the record is waited for, beyond the first second; null: until the lease is lost. */
  limitMs: number | null;
  /** Aborted once the lease is lost. Made late, since nearly all records are stored at once. */
  leaseLost(): AbortSignal;
}

/**
 * Appends one record, again until it is stored: the message id makes repeats harmless. The first append is sent before this returns. A call retains its slot
 * while its record waits, so that at most as many records wait as calls may be in flight.
 *
 * @throws `service.not_ready` once it is waited for no more; it may be stored nevertheless
 */
export async function storeRecord(record: UsageRecord, { limitMs, leaseLost }: Waiting, deps: RecorderDeps): Promise<void> {
  const { usage, log, metrics } = deps;
  const { generationId } = record;
  const body = usageRecordText(record);
  let ended: AbortSignal | null = null;
  const end = () => {
    ended ??= limitMs === null ? leaseLost() : AbortSignal.any([leaseLost(), AbortSignal.timeout(limitMs)]);
    return ended;
  };
  for (let retryMs = FIRST_RETRY_MS; ; retryMs = Math.min(retryMs * 2, LONGEST_RETRY_MS)) {
    try {
      await unlessEnded(usage.append(generationId, body), end);
      failPoint('call.recorded');
      metrics.add('usageAppends', { outcome: 'stored' });
      return;
    } catch (error) {
      metrics.add('usageAppends', { outcome: 'failed' });
      log.warn({ err: error, call_id: generationId }, 'the usage record of a call is not stored yet');
    }
    await pause(retryMs, undefined, { signal: end() }).catch(() => {}); // no fail point: pauses
    if (end().aborted) throw notStored();
  }
}

/** The work behind the promise goes on, and its later rejection is ignored. */
function unlessEnded(stored: Promise<void>, end: () => AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const late = deadlines.begin(AT_ONCE_MS, () => {
      if (end().aborted) reject(notStored());
      else end().addEventListener('abort', () => reject(notStored()), { once: true });
    });
    // no fail point: caller
    stored.then(
      () => {
        deadlines.stop(late);
        resolve();
      },
      (error: unknown) => {
        deadlines.stop(late);
        reject(error);
      },
    );
  });
}

function notStored(): SwitchyardError {
  return new SwitchyardError('service.not_ready', 'the usage record of the call could not be stored in time');
}
