import type { UsageLog, UsageMessage } from '#bus/bus.ts';
import { pauseFor } from '#bus/pause.ts';
import type { Clock } from '#shared/clock.ts';
import { storeDeadLetter } from '#shared/effects/store-dead-letter.ts';
import { failPoint } from '#shared/fail-points.ts';
import type { Database } from '#shared/storage/database.ts';
import { sqlStateOf } from '#shared/storage/transient-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';
import { OverdueInterims } from './bill-interims.ts';
import { lapseReservations } from './lapse-reservations.ts';
import { readRecords, type UnusableRecord } from './read-records.ts';
import { type ReadRecord, writeUsage } from './write-usage.ts';

/** Records per transaction. */
const MAX_BATCH = 500;
/** From one look at the log to the next: under load a transaction has many records, and a lone record waits for nothing. */
const BATCH_INTERVAL_MS = 200;
const LAPSE_EVERY_MS = 10_000;
/** SQLSTATEs of data exceptions and constraints: a value that the tables can't hold. */
const UNUSABLE_VALUE = /^(22|23)/;

export interface LedgerDeps {
  usage: UsageLog;
  database: Database;
  /** The database's. */
  clock: Clock;
  log: Log;
  metrics: Metrics;
  lapseEveryMs?: number;
}

/**
 * Moves usage records from the log to the ledger, and ends the reservations of dead calls. Every router worker runs it. While the database is away, batches
 * are rejected and records wait in the log: nothing is acknowledged before it is committed. A record that can't be written becomes a dead letter.
 *
 * @returns its stop waits for the batch in progress
 */
export function startLedger(deps: LedgerDeps): { stop(): Promise<void> } {
  const { usage, metrics, clock } = deps;
  const stopping = new AbortController();
  const consuming = usage.consume((messages) => bookUsage(messages, deps), { maxBatch: MAX_BATCH, everyMs: BATCH_INTERVAL_MS });
  const lapsing = lapseUntil(stopping.signal, deps);
  const unwatch = [
    // no fail point: reads
    metrics.watch('usageBacklog', async () => [{ labels: {}, value: (await usage.backlog()).records }]),
    metrics.watch('usageBacklogSeconds', async () => {
      const { oldestAtMs } = await usage.backlog(); // no fail point: reads
      return [{ labels: {}, value: oldestAtMs === null ? 0 : Math.max(0, clock.nowMs() - oldestAtMs) / 1_000 }];
    }),
  ];
  return {
    async stop() {
      for (const end of unwatch) end();
      stopping.abort();
      await Promise.all([consuming.stop(), lapsing]); // no fail point: stops
    },
  };
}

/** Accepts a batch of the log. @throws the database's errors: then all of it has to come again */
export async function bookUsage(messages: readonly UsageMessage[], deps: Pick<LedgerDeps, 'database' | 'log' | 'metrics'>): Promise<void> {
  const { read, unusable } = readRecords(messages);
  await writeUsable(read, deps); // no fail point: inside
  for (const record of unusable) await setAside(record, deps); // no fail point: inside
}

type WriteDeps = Pick<LedgerDeps, 'database' | 'log' | 'metrics'>;

/** A value that the tables can't hold fails its whole batch: halves find it. */
async function writeUsable(records: readonly ReadRecord[], deps: WriteDeps): Promise<void> {
  const [first] = records;
  if (first === undefined) return;
  try {
    const inserted = await writeUsage(deps.database, records);
    failPoint('ledger.written');
    deps.metrics.add('usageRecords', { outcome: 'written' }, inserted);
    deps.metrics.add('usageRecords', { outcome: 'repeated' }, records.length - inserted);
  } catch (error) {
    if (!UNUSABLE_VALUE.test(sqlStateOf(error) ?? '')) throw error;
    if (records.length === 1) {
      const reason = `the ledger can't hold it: ${error instanceof Error ? error.message : String(error)}`;
      return setAside({ messageId: first.record.generationId, body: first.body, reason }, deps);
    }
    const half = Math.ceil(records.length / 2);
    await writeUsable(records.slice(0, half), deps); // no fail point: inside (2)
    await writeUsable(records.slice(half), deps);
  }
}

async function setAside({ messageId, body, reason }: UnusableRecord, { database, log, metrics }: WriteDeps): Promise<void> {
  // no fail point: dead-letters
  await storeDeadLetter(database, { id: messageId, source: 'usage', partition: null, sessionId: null, reason, body });
  metrics.add('usageRecords', { outcome: 'unusable' });
  metrics.add('deadLetters', { source: 'usage' });
  log.error({ call_id: messageId, reason }, 'a usage record could not be written: its call is not in the ledger, and a dead letter has the record');
}

/** Never rejects. */
async function lapseUntil(stopped: AbortSignal, deps: LedgerDeps): Promise<void> {
  const { lapseEveryMs = LAPSE_EVERY_MS, log, metrics } = deps;
  const overdue = new OverdueInterims(deps);
  for (;;) {
    // Jitter, since all workers start together.
    await pauseFor(lapseEveryMs * (0.75 + Math.random() / 2), stopped); // no fail point: pauses
    if (stopped.aborted) return;
    try {
      // Before the reservations of these calls lapse.
      await billInterims(overdue, deps); // no fail point: inside
      // no fail point, because a repeated statement finds no more of them
      for (const { keyId, amountNano, reservations } of await lapseReservations(deps)) {
        metrics.add('reservationsLapsed', {}, reservations);
        log.warn({ key_id: keyId, reservations, amount_nano: amountNano }, 'reservations of calls that ended without a usage record were given back');
      }
    } catch (error) {
      log.debug({ err: error }, 'reservations of dead calls could not be ended: the next try follows');
    }
  }
}

/** Of calls whose worker died, and that no other worker has ended. */
async function billInterims(overdue: OverdueInterims, deps: LedgerDeps): Promise<void> {
  const messages = await overdue.next(); // no fail point: reads
  if (messages.length === 0) return;
  await bookUsage(messages, deps); // no fail point: inside
  deps.metrics.add('interimRecordsBilled', {}, messages.length);
  const ids = messages.map(({ messageId }) => messageId);
  deps.log.warn(
    { calls: messages.length, call_ids: ids.slice(0, 10) },
    'calls that no worker has ended are billed by what they had used at their last interim record',
  );
}
