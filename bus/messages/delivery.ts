import { z } from 'zod';

/** The newest version that this release reads and writes. */
const DELIVERY_WORK_VERSION = 1;

/** One round of a delivery, on `work.delivery`; its message id is the effect's id. Address, body and tries are in the row of `deliveries`. */
export const deliveryWork = z.object({
  v: z.literal(DELIVERY_WORK_VERSION),
  effectId: z.string(),
  deliveryId: z.string(),
  /** Its owner gets the result. */
  sessionId: z.string(),
  /** Epoch milliseconds after which this round is not begun. */
  deadlineAtMs: z.number(),
  createdAtMs: z.number(),
  /** May have been published before, as after a take-over: the worker first checks the effect's row. */
  republished: z.boolean(),
  traceparent: z.string().nullable(),
});
export type DeliveryWork = z.infer<typeof deliveryWork>;
