import { z } from 'zod';

/** `error.code` of a failed run's callback and record. */
const runErrorCode = z.enum([
  'timeout',
  'engine_error',
  'tool_error',
  'output_validation_failed',
  'input_validation_failed',
  'session_error',
  'max_engine_iterations_reached',
]);

/** Why a run failed. `details`: of a validation the violating JSON `path` and `schema_path`, else what belongs to the code. */
export const runError = z.object({ code: runErrorCode, message: z.string(), details: z.record(z.string(), z.unknown()) });
export type RunError = z.infer<typeof runError>;
