import type { DeliveryWork } from '#bus/messages/delivery.ts';
import type { ResultCommand } from '#services/work/item-kind.ts';
import { itemSpan } from '#services/work/item-span.ts';
import type { RunningItem } from '#services/work/running-items.ts';
import type { Clock } from '#shared/clock.ts';
import type { BundleCache } from '#shared/config/bundle-cache.ts';
import { agentApiKey } from '#shared/config/load-bundle.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import { failPoint } from '#shared/fail-points.ts';
import type { GuardedPoster } from '#shared/http/guarded-post.ts';
import { ulid } from '#shared/ids.ts';
import type { Database } from '#shared/storage/database.ts';
import { retryWhileTransient } from '#shared/storage/retry-while-transient.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';
import type { Attributes, Tracing } from '#shared/telemetry/tracing.ts';
import { countAttempt, readDelivery, type StoredDelivery } from './delivery-rows.ts';
import { postCallback } from './post-callback.ts';
import type { Attempt } from './post-once.ts';
import { UNCHECKED } from './receiver-breaker.ts';
import { leaveBreaker, type Receiver, type Receivers } from './receivers.ts';

/** What posting needs. */
export interface DeliverDeps {
  database: Database;
  bundles: BundleCache;
  environment: Environment;
  poster: Pick<GuardedPoster, 'post'>;
  maxAttempts: number;
  timeoutMs: number;
  clock: Clock;
  log: Log;
  metrics: Metrics;
  tracing: Tracing;
}

/** What the owner gets. */
export type DeliveryReport = Extract<ResultCommand, { type: 'delivery.reported' }>;

interface Deps extends DeliverDeps {
  receivers: Receivers;
}

/** Older deliveries are posted although many wait for their receiver, or its breaker is open. The share that a host has of the worker may still postpone them. */
const MAX_POSTPONED_MS = 600_000;
const BUSY_MS = 1_000;
/** Jitter of pauses, so that postponed deliveries do not return together. */
const SPREAD_MS = 4_000;

/** One item is at most one attempt. The session's owner schedules the next round and writes the delivery's state. */
export async function deliver(work: DeliveryWork, running: RunningItem, deps: Deps): Promise<DeliveryReport> {
  const { deliveryId } = work;
  const found = await retryWhileTransient(() => readDelivery(deps.database, deliveryId), running.signal); // no fail point: reads
  if (found === null || found.state !== 'open') return finalReportOf(deliveryId, found, '');
  const receiver = deps.receivers.of(found.url);
  if (receiver.isFull(isOverdue(found, deps))) return postponed(deliveryId, found, 'busy', BUSY_MS, deps);
  return receiver.withSlot(running.signal, () => deliverTo(receiver, work, found, running, deps));
}

/** The caller holds one of the receiver's slots. */
async function deliverTo(receiver: Receiver, work: DeliveryWork, found: StoredDelivery, running: RunningItem, deps: Deps): Promise<DeliveryReport> {
  const pass = isOverdue(found, deps) ? UNCHECKED : receiver.breaker.enter();
  if (typeof pass === 'number') return postponed(work.deliveryId, found, 'silent', pass, deps);
  let outcome: Attempt | null = null;
  try {
    const attempted = await attemptOnce(work, found, running, deps); // no fail point: inside
    outcome = attempted.outcome;
    return attempted.report;
  } finally {
    leaveBreaker(receiver, pass, outcome, deps.log);
  }
}

function isOverdue({ createdAtMs }: StoredDelivery, { clock }: Deps): boolean {
  return clock.nowMs() - createdAtMs > MAX_POSTPONED_MS;
}

/** Uses up no attempt: the owner makes another round after the pause. */
function postponed(deliveryId: string, { attempts }: StoredDelivery, why: 'silent' | 'busy', waitMs: number, { metrics }: Deps): DeliveryReport {
  metrics.add('callbacksPostponed', { reason: why });
  const reason =
    why === 'silent'
      ? 'the circuit breaker of its receiver is open; nothing was posted'
      : 'too many callbacks to its receiver are in flight; nothing was posted';
  const retryAfterMs = Math.round(waitMs + Math.random() * SPREAD_MS);
  return { type: 'delivery.reported', deliveryId, attempts, outcome: 'failed', reason, retryAfterMs };
}

/** @returns `outcome` null when nothing was posted */
async function attemptOnce(
  work: DeliveryWork,
  found: StoredDelivery,
  running: RunningItem,
  deps: Deps,
): Promise<{ report: DeliveryReport; outcome: Attempt | null }> {
  const { database, maxAttempts, log, metrics } = deps;
  const { deliveryId } = work;
  const bundle = await retryWhileTransient(() => deps.bundles.read(found.bundleHash), running.signal); // no fail point: reads
  const apiKey = agentApiKey(bundle, deps.environment);
  // Counted right before the request: a worker that dies from here on has used up the attempt.
  const countedBy = ulid();
  const attempt = await retryWhileTransient(() => countAttempt(database, deliveryId, maxAttempts, countedBy), running.signal);
  if (attempt === null) return usedUp(deliveryId, running, deps);
  failPoint('delivery.counted');
  const outcome = await posted(work, found, attempt, apiKey, running, deps); // no fail point: inside
  log.debug({ delivery_id: deliveryId, attempt, ...outcome }, 'a callback was posted');
  const report = reportOf(deliveryId, attempt, maxAttempts, outcome);
  metrics.add('callbackAttempts', { outcome: report.outcome });
  return { report, outcome };
}

/** One attempt as one span. The receiver gets its context as `traceparent`. */
async function posted(work: DeliveryWork, found: StoredDelivery, attempt: number, apiKey: string, running: RunningItem, deps: DeliverDeps): Promise<Attempt> {
  const parent = found.traceparent ?? work.traceparent;
  const attributes = {
    'http.request.method': 'POST',
    ...receiverOf(found.url),
    'http.request.resend_count': attempt > 1 ? attempt - 1 : undefined,
    'switchyard.run.id': found.runId,
    'switchyard.delivery.id': work.deliveryId,
  };
  const trace = parent === null ? null : ({ name: 'POST callback', kind: 'client', scope: 'switchyard', attributes } as const);
  const span = itemSpan(deps.tracing, trace, { id: work.deliveryId, number: attempt, mayBeSecond: false, parent });
  const traceparent = span?.traceparent ?? parent;
  try {
    // no fail point: inside
    const outcome = await postCallback(deps.poster, found, { apiKey, attempt, traceparent, timeoutMs: deps.timeoutMs, signal: running.leaseLost });
    span?.set({ 'http.response.status_code': outcome.status ?? undefined });
    span?.end(outcome.delivered ? null : outcome.status === null ? 'unreachable' : String(outcome.status));
    return outcome;
  } catch (error) {
    span?.end('abandoned');
    throw error;
  }
}

/** Host and port only: a path or query may hold a secret. Empty for an invalid URL, which the post reports. */
function receiverOf(url: string): Attributes {
  if (!URL.canParse(url)) return {};
  const { hostname, port, protocol } = new URL(url);
  return { 'server.address': hostname, 'server.port': Number(port || (protocol === 'https:' ? 443 : 80)) };
}

function reportOf(deliveryId: string, attempts: number, maxAttempts: number, outcome: Attempt): DeliveryReport {
  if (outcome.delivered) return { type: 'delivery.reported', deliveryId, attempts, outcome: 'delivered', reason: null, retryAfterMs: null };
  const { reason, retryAfterMs } = outcome;
  return { type: 'delivery.reported', deliveryId, attempts, outcome: attempts >= maxAttempts ? 'exhausted' : 'failed', reason, retryAfterMs };
}

/** No attempt is left, as a worker died during the last one, or the delivery settled meanwhile. */
async function usedUp(deliveryId: string, running: RunningItem, { database }: DeliverDeps): Promise<{ report: DeliveryReport; outcome: null }> {
  const found = await retryWhileTransient(() => readDelivery(database, deliveryId), running.signal); // no fail point: reads
  return { report: finalReportOf(deliveryId, found, 'all attempts are used up; the outcome of the last one is unknown'), outcome: null };
}

/** Of an item that was given up. */
export async function giveUp({ deliveryId }: DeliveryWork, reason: string, running: RunningItem, { database }: DeliverDeps): Promise<DeliveryReport> {
  return finalReportOf(deliveryId, await retryWhileTransient(() => readDelivery(database, deliveryId), running.leaseLost), reason); // no fail point: reads
}

/**
 * Report of a delivery that is not posted any more. Settled ones are reported too: the effect of their round is open and would be
 * republished for ever. The owner writes the dead letter, in the commit that ends the delivery.
 */
function finalReportOf(deliveryId: string, found: StoredDelivery | null, reason: string): DeliveryReport {
  const end = { type: 'delivery.reported' as const, deliveryId, attempts: found?.attempts ?? 0, retryAfterMs: null };
  if (found === null) return { ...end, outcome: 'exhausted', reason: 'there is no such delivery' };
  if (found.state === 'delivered') return { ...end, outcome: 'delivered', reason: null };
  return { ...end, outcome: 'exhausted', reason: found.state === 'dead' ? 'it was given up before' : reason };
}
