import { type DeliveryWork, deliveryWork } from '#bus/messages/delivery.ts';
import { agentApiKey } from '#shared/config/load-bundle.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import { failPoint } from '#shared/fail-points.ts';
import type { GuardedPoster } from '#shared/http/guarded-post.ts';
import type { Database } from '#shared/storage/database.ts';
import { patiently } from '#shared/storage/patiently.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';
import type { Attributes, Tracing } from '#shared/telemetry/tracing.ts';
import type { Bundles } from '../bundles.ts';
import type { ItemKind, Run } from '../consume-items.ts';
import { itemSpan } from '../item-span.ts';
import type { Report } from '../report-result.ts';
import { countAttempt, readDelivery, type StoredDelivery } from './delivery-rows.ts';
import { type Attempt, postCallback } from './post-callback.ts';

export interface DeliverDeps {
  database: Database;
  bundles: Bundles;
  environment: Environment;
  poster: Pick<GuardedPoster, 'post'>;
  /** Attempts of one delivery in all. */
  maxAttempts: number;
  /** For one attempt. */
  timeoutMs: number;
  log: Log;
  metrics: Metrics;
  tracing: Tracing;
}

/** Callbacks: one item is one attempt. The owner of the session decides about the next one and writes the delivery's state. */
export function deliveryItems(deps: DeliverDeps): ItemKind<DeliveryWork> {
  return {
    name: 'delivery',
    schema: deliveryWork,
    needsEffectRow: false,
    // An attempt that is counted is made.
    aborts: null,
    perform: (work, run) => deliver(work, run, deps),
    // A timer of the round's own commit makes another round.
    skip: async () => null,
    giveUp: (work, reason, _body, run) => giveUp(work, reason, run, deps),
  };
}

async function deliver(work: DeliveryWork, run: Run, deps: DeliverDeps): Promise<Report> {
  const { database, maxAttempts, log, metrics } = deps;
  const { deliveryId } = work;
  const found = await patiently(() => readDelivery(database, deliveryId), run.signal);
  if (found === null || found.state !== 'open') return endOf(deliveryId, found, '');
  const bundle = await patiently(() => deps.bundles.read(found.bundleHash), run.signal);
  const apiKey = agentApiKey(bundle, deps.environment);
  // Nothing stands between the count and the request: a worker that dies behind this line has used up an attempt, whatever came of it.
  const attempt = await patiently(() => countAttempt(database, deliveryId, maxAttempts), run.signal);
  if (attempt === null) return usedUp(deliveryId, run, deps);
  failPoint('delivery.counted');
  const outcome = await posted(work, found, attempt, apiKey, run, deps);
  log.debug({ delivery_id: deliveryId, attempt, ...outcome }, 'a callback was posted');
  const report = reportOf(deliveryId, attempt, maxAttempts, outcome);
  metrics.add('callbackAttempts', { outcome: report.outcome });
  return report;
}

/** One attempt, as one span: it is what the receiver is told to go on from. */
async function posted(work: DeliveryWork, found: StoredDelivery, attempt: number, apiKey: string, run: Run, deps: DeliverDeps): Promise<Attempt> {
  const parent = found.traceparent ?? work.traceparent;
  const attributes = {
    'http.request.method': 'POST',
    ...receiverOf(found.url),
    'http.request.resend_count': attempt > 1 ? attempt - 1 : undefined,
    'switchyard.run.id': found.runId,
    'switchyard.delivery.id': work.deliveryId,
  };
  const trace = { name: 'POST callback', kind: 'client', scope: 'switchyard', attributes } as const;
  const span = itemSpan(deps.tracing, trace, { id: work.deliveryId, number: attempt, mayBeSecond: false, parent });
  const traceparent = span?.traceparent ?? parent;
  try {
    const outcome = await postCallback(deps.poster, found, { apiKey, attempt, traceparent, timeoutMs: deps.timeoutMs, signal: run.abandoned });
    span?.set({ 'http.response.status_code': outcome.status ?? undefined });
    span?.end(outcome.delivered ? null : outcome.status === null ? 'unreachable' : String(outcome.status));
    return outcome;
  } catch (error) {
    span?.end('abandoned');
    throw error;
  }
}

/** The host alone: a path or a query may hold a secret of the receiver's. Nothing for what is no address, which the post then says. */
function receiverOf(url: string): Attributes {
  if (!URL.canParse(url)) return {};
  const { hostname, port, protocol } = new URL(url);
  return { 'server.address': hostname, 'server.port': Number(port || (protocol === 'https:' ? 443 : 80)) };
}

function reportOf(deliveryId: string, attempts: number, maxAttempts: number, outcome: Attempt): Extract<Report, { type: 'delivery.reported' }> {
  if (outcome.delivered) return { type: 'delivery.reported', deliveryId, attempts, outcome: 'delivered', reason: null, retryAfterMs: null };
  const { reason, retryAfterMs } = outcome;
  return { type: 'delivery.reported', deliveryId, attempts, outcome: attempts >= maxAttempts ? 'exhausted' : 'failed', reason, retryAfterMs };
}

/** No attempt is left, or the delivery was settled meanwhile. In the first case a worker died with the last one, and nobody was told. */
async function usedUp(deliveryId: string, run: Run, { database }: DeliverDeps): Promise<Report> {
  const found = await patiently(() => readDelivery(database, deliveryId), run.signal);
  return endOf(deliveryId, found, 'all attempts are used up, and what came of the last one is not known');
}

async function giveUp({ deliveryId }: DeliveryWork, reason: string, run: Run, { database }: DeliverDeps): Promise<Report> {
  return endOf(deliveryId, await patiently(() => readDelivery(database, deliveryId), run.abandoned), reason);
}

/**
 * Of a delivery that is not posted any more. Also one that is settled is reported, as what it is: the round's effect is still open, and
 * would be made anew for ever. A dead letter is made by the owner, in the commit that ends the delivery.
 */
function endOf(deliveryId: string, found: StoredDelivery | null, reason: string): Report {
  const end = { type: 'delivery.reported' as const, deliveryId, attempts: found?.attempts ?? 0, retryAfterMs: null };
  if (found === null) return { ...end, outcome: 'exhausted', reason: 'there is no such delivery' };
  if (found.state === 'delivered') return { ...end, outcome: 'delivered', reason: null };
  return { ...end, outcome: 'exhausted', reason: found.state === 'dead' ? 'it was given up before' : reason };
}
