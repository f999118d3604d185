export interface DeliveryContext {
  deliveryId: string;
  traceparent: string | null;
  /** The round that may still be reported; null when it is not known which. */
  roundId: string | null;
}

/** `roundId` exposes late and repeated reports; `nextRoundId` names the round that the event may open. `atMs`: time of application, epoch ms. */
export type DeliveryEvent = { atMs: number } & (
  | { type: 'delivery.opened'; nextRoundId: string }
  | { type: 'round.delivered'; roundId: string }
  /** To be retried. `retryAfterMs`: as the receiver asks, null when it does not. `chance`: between 0 and 1. */
  | { type: 'round.failed'; roundId: string; attempts: number; retryAfterMs: number | null; chance: number }
  /** `reason`: null when it is not known. */
  | { type: 'round.exhausted'; roundId: string; reason: string | null }
  /** No report: the item or its report was lost. */
  | { type: 'round.overdue'; roundId: string; nextRoundId: string }
  | { type: 'retry.due'; nextRoundId: string }
);

/** Executed by the runtime, in this order, in one commit. */
export interface DeliveryActions {
  /** Opens a round: at most one try by a worker. */
  effect: { kind: 'delivery'; id: string; deadlineAtMs: number; deliveryId: string; traceparent: string | null };
  /** Ends a round. */
  close: { id: string; state: 'done' | 'superseded' };
  timer: { key: string; atMs: number; deliveryId: string; command: 'delivery.due' | { type: 'effect.overdue'; callId: string; kind: 'delivery' } };
  disarm: { key: string };
  settle: { deliveryId: string; state: 'delivered' } | { deliveryId: string; state: 'dead'; reason: string | null };
}
