import { RETRY_SUFFIX } from '#actors/kinds/delivery/actor.ts';
import type { Database, NamedStatement } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { within } from '#shared/within.ts';

const MAX_ADDRESSES_READ = 1_000;
const MAX_RECEIVERS_NAMED = 20;
/** Short, so that most of the stop's time is left for releasing partitions. Past it the line has no receivers. */
const RECEIVERS_WITHIN_MS = 1_000;

/** Through open effects and timers: the table of deliveries holds weeks of them. */
const ADDRESSES: NamedStatement = {
  name: 'callbacks-left',
  text: `select distinct url from deliveries where id in (
    select turn_id from effects where state = 'open' and kind = 'delivery'
    union select command ->> 'deliveryId' from timers where key like '%${RETRY_SUFFIX}') limit $1`,
};

interface PendingCallbacks {
  /** For their retry. */
  waiting: number;
  /** At a worker; their outcome is unknown. */
  inFlight: number;
}

/** Logs the number and the receivers of callbacks that no other host takes over. */
export async function logPendingCallbacks({ waiting, inFlight }: PendingCallbacks, { database, log }: { database: Database; log: Log }): Promise<void> {
  if (waiting + inFlight === 0) return;
  const none = (): string[] => [];
  const receivers = await within(RECEIVERS_WITHIN_MS, receiversOf(database).catch(none), none);
  log.warn({ callbacks: waiting + inFlight, in_flight: inFlight, receivers }, 'callbacks are pending: they are posted after the next start with this database');
}

/** Hosts only: a path or query may hold a secret. */
async function receiversOf(database: Database): Promise<string[]> {
  const { rows } = await database.query<{ url: string }>(ADDRESSES, [MAX_ADDRESSES_READ]);
  const hosts = new Set(rows.flatMap(({ url }) => (URL.canParse(url) ? [new URL(url).host] : [])));
  return [...hosts].slice(0, MAX_RECEIVERS_NAMED);
}
