import { z } from 'zod';
import { sessionStatuses } from './conversation-event.ts';
import { idempotencyKey } from './idempotency-key.ts';
import { unknownField } from './unknown-field.ts';
import { wholeNumber } from './whole-number.ts';

const metadata = z.record(z.string(), z.unknown());
const title = z.string().max(500);
const label = z.string().max(128);
const mode = z.enum(['auto', 'manual']);

export const MAX_LABELS = 100;
const MAX_URL_CHARACTERS = 2_048;

// Also a text of the database, which can't hold NUL, and a field of log lines.
const customer = z.string().regex(/^[^\p{Cc}]{1,128}$/u, 'must have 1 to 128 characters, none of them a control character');

/** Body of POST /sessions. Unknown fields are ignored. */
export const createSessionRequest = z.object({
  /** Absent: a new guest. */
  customer_id: customer.optional(),
  title: title.nullish(),
  metadata: metadata.default({}),
  labels: z.array(label).max(MAX_LABELS).default([]),
  /** Whether the agent may speak before the customer does. */
  allow_greeting: z.boolean().default(true),
  mode: mode.default('auto'),
  /** Where the session's events are posted; null: as without it. */
  event_webhook_url: z.string().min(1).max(MAX_URL_CHARACTERS).nullish(),
});

/**
 * Body of PATCH /sessions/{id}; absent fields stay unchanged. Strict, since a misspelt field would be lost silently. Removals from
 * metadata and labels are applied last.
 */
export const patchSessionRequest = z
  .object({
    /** Null: none. */
    title: title.nullable().optional(),
    mode: mode.optional(),
    customer_id: z.never('can not be changed: a session stays with its customer').optional(),
    metadata: z
      .object({ set: metadata.default({}), unset: z.array(z.string()).default([]) })
      .catchall(unknownField)
      .optional(),
    labels: z
      .object({ upsert: z.array(label).max(MAX_LABELS).default([]), remove: z.array(label).max(MAX_LABELS).default([]) })
      .catchall(unknownField)
      .optional(),
    /** Offset of the newest event that a client has displayed; -1: none. */
    consumption_offsets: z
      .object({ client: z.int().min(-1).optional() })
      .catchall(unknownField)
      .optional(),
  })
  .catchall(unknownField);

/** Query of GET /sessions. An absent field does not filter; unknown fields are ignored. */
export const listSessionsQuery = z.object({
  /** Only sessions of this customer. */
  customer_id: customer.optional(),
  /** Only sessions that have this label. */
  label: z
    .string()
    .regex(/^[^\0]{0,128}$/, 'must be a label')
    .optional(),
  /** By creation: newest first, or oldest first. */
  sort: z.enum(['desc', 'asc']).default('desc'),
  /** Entries of a page, 1 to 200. Absent: 50. */
  limit: wholeNumber.pipe(z.number().min(1).max(200)).default(50),
  /** `next_cursor` of the page before. */
  cursor: z.string().max(512).optional(),
});

/** Body of PUT /sessions/{id}/event_webhook. */
export const setEventWebhookRequest = z
  .object({
    /** Null: nothing is posted any more. */
    url: z.string().min(1).max(MAX_URL_CHARACTERS).nullable(),
    /** Of the first event to post; absent: where the webhook is, and the end of the log for a session without one. */
    from_offset: z.int().min(0).nullish(),
  })
  .catchall(unknownField);

export interface SessionRecord {
  id: string;
  customer_id: string;
  agent_id: string;
  title: string | null;
  mode: 'auto' | 'manual';
  /** Status of the latest status event; `ready` before the first. */
  status: string;
  created_at: string;
  updated_at: string;
  /** Offset of the newest event, -1 while the log is empty. */
  last_offset: number;
  consumption_offsets: { client: number };
  metadata: Record<string, unknown>;
  labels: string[];
  ephemeral: boolean;
}

const keyed = { metadata: metadata.default({}), idempotency_key: idempotencyKey.nullish() };

const ofMessages = {
  ...keyed,
  trigger_processing: z.boolean().optional(),
  participant: z.object({ id: z.string().min(1).max(128).nullish(), display_name: z.string().min(1).max(200) }).nullish(),
};

const messageSource = z.enum(['customer', 'customer_ui', 'human_agent', 'human_agent_on_behalf_of_ai_agent', 'system']);

/** Sources of a `user_message`. Any other would be lost, and its text shown to the model as the customer's. */
const customerSource = messageSource.extract(['customer', 'customer_ui'], {
  error: ({ input }) => {
    const source = messageSource.safeParse(input).data ?? 'human_agent';
    return `must be "customer" or "customer_ui", since a user_message is the customer's; a message of another source is sent as {"kind": "message", "source": "${source}", "message": "…"}`;
  },
});

const ofFrontEnds = {
  ...keyed,
  source: messageSource.default('customer_ui'),
  trigger_processing: z.literal(false, 'must be false: only messages and tool events begin a turn').optional(),
};

/** Body of POST /sessions/{id}/events: a message in the native form or that of engine-style clients, or an event of a front end. */
export const postEventRequest = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('user_message'), source: customerSource.nullish(), text: z.string().min(1), ...ofMessages }),
  z.object({
    kind: z.literal('message'),
    source: messageSource.default('customer'),
    message: z.string().min(1),
    ...ofMessages,
  }),
  z.object({ kind: z.literal('custom'), data: z.unknown().refine((data) => data !== undefined, 'is required: any JSON value'), ...ofFrontEnds }),
  z.object({ kind: z.literal('status'), status: z.enum(sessionStatuses), data: z.unknown().optional(), ...ofFrontEnds }),
]);

/** Query of POST /sessions/{id}/events. */
export const postEventQuery = z.object({
  /** Whether the router's moderation reads a customer's message before any model of the agent does; `paranoid` also looks for what is hidden or split. */
  moderation: z.enum(['none', 'auto', 'paranoid']).default('none'),
});

/** The initial record of a run's ephemeral session. @param at start of the run, RFC 3339 */
export function sessionOfRun({ id, customerId, agentId, at }: { id: string; customerId: string; agentId: string; at: string }): SessionRecord {
  return {
    id,
    customer_id: customerId,
    agent_id: agentId,
    title: null,
    mode: 'auto',
    status: 'ready',
    created_at: at,
    updated_at: at,
    last_offset: -1,
    consumption_offsets: { client: -1 },
    metadata: {},
    labels: [],
    ephemeral: true,
  };
}
