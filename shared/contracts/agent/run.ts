import { z } from 'zod';
import { idempotencyKey } from './idempotency-key.ts';
import { wholeNumber } from './whole-number.ts';

const jsonObject = z.record(z.string(), z.unknown());

/** Body of POST /routines/{routine_id}/trigger. Unknown fields are ignored. */
export const triggerRequest = z.object({
  /** The routine's `input_schema` constrains it further. */
  input: jsonObject.default({}),
  callback_url: z.string().min(1),
  /** The session to run in. Absent or null: an ephemeral one. */
  session_id: z.string().min(1).nullish(),
  /** A repeated trigger of the routine with the same key returns the first run. */
  idempotency_key: idempotencyKey.nullish(),
  /** Echoed in the callback; absent or null: none. */
  metadata: jsonObject.nullish(),
});

export type TriggerRequest = z.infer<typeof triggerRequest>;

export const runStatus = z.enum(['accepted', 'running', 'succeeded', 'failed']);

/** Response to a trigger. */
export interface RunEnvelope {
  run_id: string;
  routine_id: string;
  status: z.infer<typeof runStatus>;
  session_id: string;
  /** RFC 3339 in UTC (`Z`), with milliseconds, as all times here. */
  created_at: string;
}

/** A run as the API returns it, with the fields of its callback. */
export interface RunRecord extends RunEnvelope {
  /** Null unless it succeeded. */
  output: unknown;
  /** `{code, message, details}`; null unless it failed. */
  error: unknown;
  /** Null before its first step. */
  started_at: string | null;
  /** Null before it is settled. */
  completed_at: string | null;
  /** 32 hex digits. */
  trace_id: string;
  /** The caller's; null: none. */
  metadata: unknown;
}

/**
 * How a call of a run ended, without its content. Model call: the form of its response, or `failed`. Tool call: its result, the tool's
 * error, or why there is neither. Tool list: whether all servers returned one. `abandoned`: the run ended first.
 */
export const runCallOutcome = z.object({
  type: z.enum([
    ...(['output', 'invalid-output', 'tools', 'text', 'unusable', 'failed'] as const),
    ...(['result', 'error', 'refused', 'timeout', 'unreachable', 'auth_failed', 'outcome_unknown'] as const),
    ...(['listed', 'unavailable', 'abandoned'] as const),
  ]),
  /** Error code, why a response is unusable, or which servers returned no list and why; null where `type` suffices. */
  reason: z.string().nullable(),
  /** Null unless a model call got a response, as the next two. */
  model: z.string().nullable(),
  provider: z.string().nullable(),
  usage: z.object({ prompt_tokens: z.number(), completion_tokens: z.number() }).nullable(),
});
export type RunCallOutcome = z.infer<typeof runCallOutcome>;

export interface RunStep {
  /** From 1, in the order of the requests. */
  step: number;
  kind: 'model_call' | 'tool_call' | 'tool_list';
  /** Null unless a tool call. */
  tool_id: string | null;
  /** Null while in flight; `unknown` if stored by a release without outcomes. */
  outcome: RunCallOutcome['type'] | 'unknown' | null;
  reason: string | null;
  model: string | null;
  provider: string | null;
  usage: { prompt_tokens: number; completion_tokens: number } | null;
  started_at: string;
  /** Null while in flight, as `ms`. */
  ended_at: string | null;
  /** From the request until its result was applied, queueing included. */
  ms: number | null;
}

/** Query of GET /runs/{run_id}/steps. Unknown fields are ignored. */
export const listStepsQuery = z.object({
  /** Entries of a page, 1 to 200. Absent: 50. */
  limit: wholeNumber.pipe(z.number().min(1).max(200)).default(50),
  /** `next_cursor` of the page before. */
  cursor: z
    .string()
    .regex(/^\d{1,9}$/, 'must be the next_cursor of an earlier page')
    .optional(),
});

/** Query of GET /runs. An absent field does not filter; unknown fields are ignored. */
export const listRunsQuery = z.object({
  /** Only runs of this routine. */
  routine_id: z
    .string()
    .regex(/^[\x21-\x7e]{1,128}$/, 'must be the id of a routine')
    .optional(),
  /** Only runs in this state. */
  status: runStatus.optional(),
  /** Entries of a page, 1 to 200. Absent: 50. */
  limit: wholeNumber.pipe(z.number().min(1).max(200)).default(50),
  /** `next_cursor` of the page before. */
  cursor: z.string().max(512).optional(),
});
