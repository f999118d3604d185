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

/**
 * What came of a call of a run, as it is stored and shown: nothing that was said, only how it ended. Of a model call what the model
 * answered with, or `failed`; of a tool call its result, the tool's own error, or why there is neither; of a tool list whether all servers
 * had one. `abandoned`: the run ended first.
 */
export const runCallOutcome = z.object({
  type: z.enum([
    ...(['output', 'invalid-output', 'tools', 'text', 'unusable', 'failed'] as const),
    ...(['result', 'error', 'refused', 'timeout', 'unreachable', 'auth_failed', 'outcome_unknown'] as const),
    ...(['listed', 'unavailable', 'abandoned'] as const),
  ]),
  /** The code of a failure, the reason for which an answer is unusable, the servers without a list and why; null where `type` says it all. */
  reason: z.string().nullable(),
  /** Of a model call that was answered. */
  model: z.string().nullable(),
  provider: z.string().nullable(),
  usage: z.object({ prompt_tokens: z.number(), completion_tokens: z.number() }).nullable(),
});
export type RunCallOutcome = z.infer<typeof runCallOutcome>;

/** A step of a run: one model call, tool call or tool list. */
export interface RunStep {
  /** Counts from 1, in the order in which they were asked for. */
  step: number;
  kind: 'model_call' | 'tool_call' | 'tool_list';
  /** Of a tool call. */
  tool_id: string | null;
  /** `RunCallOutcome.type`; null while it goes on, `unknown` where its end was stored by a release that kept no outcomes. */
  outcome: RunCallOutcome['type'] | 'unknown' | null;
  reason: string | null;
  model: string | null;
  provider: string | null;
  usage: { prompt_tokens: number; completion_tokens: number } | null;
  started_at: string;
  /** Null while it goes on, as `ms`. */
  ended_at: string | null;
  /** From being asked for until its result was applied, queues included. */
  ms: number | null;
}

/** Query of GET /runs/{run_id}/steps. Unknown fields are ignored. */
export const listStepsQuery = z.object({
  limit: wholeNumber.pipe(z.number().min(1).max(200)).default(50),
  /** `next_cursor` of the page before. */
  cursor: z
    .string()
    .regex(/^\d{1,9}$/, 'must be the next_cursor of an earlier page')
    .optional(),
});

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
