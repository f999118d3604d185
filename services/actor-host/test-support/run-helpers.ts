import type { WorkKind } from '#bus/bus.ts';
import { type DeliveryWork, deliveryWork } from '#bus/messages/delivery.ts';
import type { CommandOf } from '#bus/messages/session.ts';
import type { TestCluster } from './test-cluster.ts';

/** Fields that are the same in every case. */
export const HEADER = { v: 1 as const, sentAtMs: 0, answerTo: null, traceparent: null };
/** Tool call by which a model ends a run successfully. */
export const VERDICT = [{ id: 'call_1', name: 'emit_output', arguments: { verdict: 'refund' } }];

export async function runOf(cluster: TestCluster, id = 'run_1'): Promise<Record<string, unknown>> {
  return (await cluster.rows<Record<string, unknown>>('select * from runs where id = $1', [id]))[0] ?? {};
}

export async function isSettled(cluster: TestCluster, id = 'run_1'): Promise<boolean> {
  return ['succeeded', 'failed'].includes(String((await runOf(cluster, id)).state));
}

/** Payload of the run's callback; null: it has none. */
export async function callbackOf(cluster: TestCluster, id = 'run_1'): Promise<Record<string, unknown> | null> {
  const [row] = await cluster.rows<{ body: string }>('select body from deliveries where run_id = $1', [id]);
  return row === undefined ? null : (JSON.parse(row.body) as Record<string, unknown>);
}

/** Statuses with their stages, and the kinds of the other events. */
export async function statusesOf(cluster: TestCluster, sessionId: string): Promise<string[]> {
  const log = await cluster.log(sessionId);
  return log.map((event) => (event.kind === 'status' ? `${event.status}${event.stage === null ? '' : `/${event.stage}`}` : event.kind));
}

/** Takes the next item of a kind off its queue. */
export function nextItem(cluster: TestCluster, kind: WorkKind): Promise<unknown> {
  return new Promise((resolve) => {
    const reader = cluster.bus.work.consume(kind, { concurrency: 1, ackWaitMs: 30_000 }, async (item) => {
      await item.ack();
      resolve(JSON.parse(item.body));
      reader.stop().catch(() => {});
    });
  });
}

export async function nextDelivery(cluster: TestCluster): Promise<DeliveryWork> {
  return deliveryWork.parse(await nextItem(cluster, 'delivery'));
}

/** Result of a round of the callback of `run_1`. */
export function report(effectId: string, outcome: 'delivered' | 'failed' | 'exhausted', attempts: number): CommandOf<'delivery.reported'> {
  return {
    ...HEADER,
    type: 'delivery.reported',
    sessionId: 'ses_run',
    commandId: effectId,
    deliveryId: 'run_1-callback',
    callId: effectId,
    attempts,
    outcome,
    reason: outcome === 'delivered' ? null : 'the receiver answered 503',
    retryAfterMs: 50,
  };
}
