import { randomUUID } from 'node:crypto';
import { closedLoop } from './closed-loop.mjs';

/** @typedef {Pick<import('./closed-loop.mjs').LoopLoad, 'inFlight' | 'times' | 'roots'> & { databaseUrl: string }} AdmissionLoad `roots`: the database */

/** Billionths of a US dollar: a fraction of a cent per call, of a million dollars. */
const AMOUNT_NANO = 1_000_000;
const LIMIT_NANO = 1_000_000_000_000_000;
const CALL_MS = 600_000;

/**
 * Reservations alone, as a gateway makes them before it sends a call: in this process, against the target's database. All are of one key, the dearest case.
 *
 * @param {AdmissionLoad} load
 * @returns {Promise<import('./closed-loop.mjs').LoopFigures & { ownMicros: number }>} `ownMicros`: CPU of this process per reservation; the database's is in `cpuPerThousand`
 */
export async function admissions({ databaseUrl, inFlight, times, roots }) {
  const { openPostgres, Reservations, silentLog, noMetrics } = await modules();
  const database = await openPostgres({ url: databaseUrl, applicationName: 'bench', log: silentLog });
  const reservations = new Reservations({ database, log: silentLog, metrics: noMetrics });
  const keyId = `bench-${randomUUID()}`;
  let number = 0;
  const run = () => {
    number += 1;
    const asked = { callId: `${keyId}-${number}`, keyId, amountNano: AMOUNT_NANO, limitNano: LIMIT_NANO, limitReset: null, deadlineAtMs: Date.now() + CALL_MS };
    return reservations.reserve(asked);
  };
  let before = process.cpuUsage();
  let used = before;
  const hooks = {
    onBegin: () => {
      before = process.cpuUsage();
    },
    onEnd: () => {
      used = process.cpuUsage(before);
    },
  };
  try {
    const figures = await closedLoop({ inFlight, times, roots, hooks, openSlot: () => ({ run, leave: () => {} }) });
    return { ...figures, ownMicros: (used.user + used.system) / figures.count };
  } finally {
    await database.query('delete from reservations where key_id = $1', [keyId]);
    await database.query('delete from key_spend where key_id = $1', [keyId]);
    await reservations.stop();
    await database.close();
  }
}

async function modules() {
  const dist = (/** @type {string} */ path) => new URL(`../../dist/shared/${path}`, import.meta.url).href;
  /** @type {typeof import('../../shared/storage/postgres/open-postgres.ts')} */
  const { openPostgres } = await import(dist('storage/postgres/open-postgres.js'));
  /** @type {typeof import('../../shared/credit/reservations.ts')} */
  const { Reservations } = await import(dist('credit/reservations.js'));
  /** @type {typeof import('../../shared/telemetry/log.ts')} */
  const { silentLog } = await import(dist('telemetry/log.js'));
  /** @type {typeof import('../../shared/telemetry/metrics.ts')} */
  const { noMetrics } = await import(dist('telemetry/metrics.js'));
  return { openPostgres, Reservations, silentLog, noMetrics };
}
