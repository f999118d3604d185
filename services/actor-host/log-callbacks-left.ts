import { DELIVERY_DUE } from '#actors/runtime/timers.ts';
import type { Database, NamedStatement } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';

/** Addresses that are read, and hosts that the line names: enough to see where the trouble is, in one line. */
const MAX_ADDRESSES_READ = 1_000;
const MAX_RECEIVERS_NAMED = 20;
/** With the database away the line comes without the receivers, and the stop has most of its time left for handing over. */
const RECEIVERS_WITHIN_MS = 1_000;

/** By way of what is open: the table of deliveries holds those of weeks. */
const ADDRESSES: NamedStatement = {
  name: 'callbacks-left',
  text: `select distinct url from deliveries where id in (
    select turn_id from effects where state = 'open' and kind = 'delivery'
    union select command ->> 'deliveryId' from timers where key like '%${DELIVERY_DUE}') limit $1`,
};

interface CallbacksLeft {
  /** For their retry. */
  waiting: number;
  /** With a worker when the time was over: whether they arrive is not known. */
  inFlight: number;
}

/** Says in one line how many callbacks a host leaves behind that no other host goes on with, and for which receivers. Nothing when there are none. */
export async function logCallbacksLeft({ waiting, inFlight }: CallbacksLeft, { database, log }: { database: Database; log: Log }): Promise<void> {
  if (waiting + inFlight === 0) return;
  let limit: NodeJS.Timeout | undefined;
  const late = new Promise<string[]>((resolve) => {
    limit = setTimeout(() => resolve([]), RECEIVERS_WITHIN_MS);
  });
  const receivers = await Promise.race([receiversOf(database).catch(() => []), late]);
  clearTimeout(limit);
  log.warn({ callbacks: waiting + inFlight, in_flight: inFlight, receivers }, 'callbacks are left: they are posted after the next start with this database');
}

/** Hosts alone: a path or a query may hold a secret of the receiver's. */
async function receiversOf(database: Database): Promise<string[]> {
  const { rows } = await database.query<{ url: string }>(ADDRESSES, [MAX_ADDRESSES_READ]);
  const hosts = new Set(rows.flatMap(({ url }) => (URL.canParse(url) ? [new URL(url).host] : [])));
  return [...hosts].slice(0, MAX_RECEIVERS_NAMED);
}
