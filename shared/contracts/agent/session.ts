import { z } from 'zod';

const metadata = z.record(z.string(), z.unknown());

/** Body of POST /sessions. Unknown fields are ignored. */
export const createSessionRequest = z.object({
  customer_id: z
    .string()
    // It becomes a key in the database, whose texts have no NUL, and a word in logs.
    .regex(/^[^\p{Cc}]{1,128}$/u, 'expected 1 to 128 characters, none of them a control character')
    .optional(),
  title: z.string().max(500).nullish(),
  metadata: metadata.default({}),
  labels: z.array(z.string().max(128)).max(100).default([]),
  allow_greeting: z.boolean().default(true),
  mode: z.enum(['auto', 'manual']).default('auto'),
});

/** A session as the API shows it. */
export interface SessionRecord {
  id: string;
  customer_id: string;
  agent_id: string;
  title: string | null;
  mode: 'auto' | 'manual';
  /** The latest status event's status; `ready` before the first. */
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

const common = {
  metadata: metadata.default({}),
  idempotency_key: z.string().min(1).max(256).nullish(),
  trigger_processing: z.boolean().optional(),
};

/** Body of POST /sessions/{id}/events: the native form, or the form of engine-style clients. */
export const postEventRequest = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('user_message'), text: z.string().min(1), ...common }),
  z.object({
    kind: z.literal('message'),
    source: z.enum(['customer', 'customer_ui', 'human_agent', 'human_agent_on_behalf_of_ai_agent', 'system']).default('customer'),
    message: z.string().min(1),
    ...common,
  }),
]);
