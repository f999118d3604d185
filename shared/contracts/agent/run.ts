import { z } from 'zod';
import { wholeNumber } from './whole-number.ts';

const jsonObject = z.record(z.string(), z.unknown());

/** Body of POST /routines/{routine_id}/trigger. Unknown fields are ignored. */
export const triggerRequest = z.object({
  /** What the run works on; the routine's own schema says more about it. */
  input: jsonObject.default({}),
  /** Where the outcome is posted. */
  callback_url: z.string().min(1),
  /** A session to run in. Absent or null: one that is made for the run, and goes after it. */
  session_id: z.string().min(1).nullish(),
  /** A second trigger of the routine with the same key is answered with the first one's run. */
  idempotency_key: z.string().min(1).max(256).nullish(),
  /** Echoed in the callback. Absent or null: none. */
  metadata: jsonObject.nullish(),
});

export type TriggerRequest = z.infer<typeof triggerRequest>;

export const runStatus = z.enum(['accepted', 'running', 'succeeded', 'failed']);

/** What a trigger is answered with. */
export interface RunEnvelope {
  run_id: string;
  routine_id: string;
  status: z.infer<typeof runStatus>;
  session_id: string;
  /** RFC 3339 with `Z`, to the millisecond, as all times here. */
  created_at: string;
}

/** A run as those see it who ask for it: what its callback says, for those whom it did not reach. */
export interface RunRecord extends RunEnvelope {
  /** Null unless it succeeded. */
  output: unknown;
  /** `{code, message, details}`; null unless it failed. */
  error: unknown;
  /** Null before its first step. */
  started_at: string | null;
  /** Null before it is settled. */
  completed_at: string | null;
  /** 32 hex. */
  trace_id: string;
  /** The caller's, null when there was none. */
  metadata: unknown;
}

/** Query of GET /runs. What is absent does not filter. Unknown fields are ignored. */
export const listRunsQuery = z.object({
  routine_id: z
    .string()
    .regex(/^[\x21-\x7e]{1,128}$/, 'must be the id of a routine')
    .optional(),
  status: runStatus.optional(),
  limit: wholeNumber.pipe(z.number().min(1).max(200)).default(50),
  /** `next_cursor` of the page before. */
  cursor: z.string().max(512).optional(),
});
