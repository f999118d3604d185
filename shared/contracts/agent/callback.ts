import { z } from 'zod';
import { runError } from './run-error.ts';

/** RFC 3339 in UTC, with milliseconds. */
const time = z.iso.datetime();

/** What is POSTed to a run's `callback_url` when it settles (agent-server, "Autonomous callback payload"). Receivers dedupe by `run_id`. */
export const callbackPayload = z.object({
  schema_version: z.int().default(1),
  run_id: z.string(),
  routine_id: z.string(),
  status: z.enum(['succeeded', 'failed']),
  /** Matches the routine's `output_schema`; null unless the run succeeded. */
  output: z.record(z.string(), z.unknown()).nullable().default(null),
  /** Null unless it failed. */
  error: runError.nullable().default(null),
  /** The caller's session if it named one, else the ephemeral one. */
  session_id: z.string(),
  /** 32 hex digits. */
  trace_id: z.string().nullable().default(null),
  started_at: time,
  completed_at: time,
  /** The caller's, verbatim. */
  metadata: z.record(z.string(), z.unknown()).optional(),
  /** Of the delivery: the same in each of its attempts. */
  idempotency_key: z.string().optional(),
  origin_service: z.string().default('agent-server'),
});
