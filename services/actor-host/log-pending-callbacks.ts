import type { EffectStore } from '#actors/store/port/effect-store.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { within } from '#shared/within.ts';

const MAX_ADDRESSES_READ = 1_000;
const MAX_RECEIVERS_NAMED = 20;
/** Short, so that most of the stop's time is left for releasing partitions. Past it the line has no receivers. */
const RECEIVERS_WITHIN_MS = 1_000;

interface PendingCallbacks {
  /** For their retry. */
  waiting: number;
  /** At a worker; their outcome is unknown. */
  inFlight: number;
}

/** Logs the number and the receivers of callbacks and rounds of events that no other host takes over. */
export async function logPendingCallbacks(
  { waiting, inFlight }: PendingCallbacks,
  { effects, log }: { effects: Pick<EffectStore, 'pendingReceivers'>; log: Log },
): Promise<void> {
  if (waiting + inFlight === 0) return;
  const none = (): string[] => [];
  const receivers = await within(RECEIVERS_WITHIN_MS, receiversOf(effects).catch(none), none);
  log.warn(
    { callbacks: waiting + inFlight, in_flight: inFlight, receivers },
    'callbacks and events are pending: they are posted after the next start with this database',
  );
}

/** Hosts only: a path or query may hold a secret. */
async function receiversOf(effects: Pick<EffectStore, 'pendingReceivers'>): Promise<string[]> {
  const urls = await effects.pendingReceivers(MAX_ADDRESSES_READ);
  const hosts = new Set(urls.flatMap((url) => (URL.canParse(url) ? [new URL(url).host] : [])));
  return [...hosts].slice(0, MAX_RECEIVERS_NAMED);
}
