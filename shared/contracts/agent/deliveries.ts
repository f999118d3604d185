import { z } from 'zod';
import { runStatus } from './run.ts';
import { wholeNumber } from './whole-number.ts';

const time = z.iso.datetime();
const page = {
  /** Entries of a page, 1 to 200. Absent: 50. */
  limit: wholeNumber.pipe(z.number().min(1).max(200)).default(50),
  /** `next_cursor` of the page before. */
  cursor: z.string().max(1_024).optional(),
};

/** What was given up and is kept for an operator. `call`: of a turn or run; calls of the router's clients are not the agent's. */
const deadLetterSource = z.enum(['command', 'delivery', 'event', 'tool', 'call']);
export type DeadLetterSource = z.infer<typeof deadLetterSource>;

/** Query of GET /dead_letters. Unknown fields are ignored, as in all lists. */
export const listDeadLettersQuery = z.object({
  /** Only those of this kind. */
  source: deadLetterSource.optional(),
  ...page,
});
/** Query of POST /dead_letters/{dead_letter_id}/replay: which one, where several have the id. */
export const replayQuery = z.object({
  /** Its kind; needed where dead letters of several kinds have the id. */
  source: deadLetterSource.optional(),
});

/** `session_id`: null when its content does not say it. `replayable`: whether this API can replay it. */
export const deadLetterAnswer = z.object({
  id: z.string(),
  source: deadLetterSource,
  session_id: z.string().nullable(),
  reason: z.string(),
  created_at: time,
  replayable: z.boolean(),
});
export type DeadLetterRecord = z.infer<typeof deadLetterAnswer>;

/** `settled`: delivered meanwhile; only the dead letter was left to remove. */
export const replayAnswer = z.object({ id: z.string(), source: deadLetterSource, outcome: z.enum(['replayed', 'settled']) });

const deliveryState = z.enum(['open', 'delivered', 'dead']);
/** Query of GET /deliveries. */
export const listDeliveriesQuery = z.object({
  /** Only those in this state. */
  state: deliveryState.optional(),
  ...page,
});

/** The callback of a run. `url`: without its query and password. `attempts`: tries that have begun. */
export const deliveryAnswer = z.object({
  id: z.string(),
  run_id: z.string(),
  session_id: z.string(),
  url: z.string(),
  state: deliveryState,
  attempts: z.int().min(0),
  created_at: time,
  settled_at: time.nullable(),
});
export type DeliveryRecord = z.infer<typeof deliveryAnswer>;

/** Query of GET /webhook_deliveries. */
export const listWebhookDeliveriesQuery = z.object(page);

/** What a webhook of the manifest has taken. `runs`: those that are still kept. */
export const webhookDeliveryAnswer = z.object({
  webhook: z.string(),
  /** SHA-256 of the body, in hex. */
  body_hash: z.string(),
  received_at: time,
  matched: z.array(z.string()),
  runs: z.array(z.object({ run_id: z.string(), routine_id: z.string(), status: runStatus })),
});
export type WebhookDeliveryRecord = z.infer<typeof webhookDeliveryAnswer>;

/** `url` null: the deployment's, if there is one. `from_offset`: of the next event to post; `attempts`: failed ones of that event. */
export const eventWebhookStateAnswer = z.object({
  is_on: z.boolean(),
  url: z.string().nullable(),
  from_offset: z.int().min(0),
  attempts: z.int().min(0),
  waiting_since: time.nullable(),
});
export type EventWebhookState = z.infer<typeof eventWebhookStateAnswer>;
