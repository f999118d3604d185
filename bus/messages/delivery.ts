import { z } from 'zod';

/**
 * One round of a delivery, on `work.delivery`; its message id is the effect's id. Address, body and the count of attempts stand in the
 * row of `deliveries` and not here.
 */
export const deliveryWork = z.object({
  v: z.literal(1),
  effectId: z.string(),
  deliveryId: z.string(),
  /** Whose owner learns how it went. */
  sessionId: z.string(),
  /** Epoch milliseconds after which this round is not begun. */
  deadlineAtMs: z.number(),
  createdAtMs: z.number(),
  /** Whether the item may have been on the bus before, as after a take-over: its worker looks at the effect's row first. */
  republished: z.boolean(),
  traceparent: z.string().nullable(),
});
export type DeliveryWork = z.infer<typeof deliveryWork>;
