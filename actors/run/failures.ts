import type { RunContext, RunError } from './types.ts';

/** Why a tool server is of no use. */
export type LossReason = RunContext['unavailable'][string];

const LOSSES: Record<LossReason, string> = { unreachable: 'can not be reached', auth_failed: "refuses the agent's credentials" };

/** @param toolId the tool that was called, or `server:*` when none of a server's can be */
export function toolError(subject: string, toolId: string, reason: LossReason): RunError {
  return { code: 'tool_error', message: `${subject} ${LOSSES[reason]}`, details: { tool_id: toolId, reason } };
}

/** The iterations are used up. A model that did emit, but never what was asked for, failed at that. */
export function capError({ invalidOutput, maxIterations }: RunContext): RunError {
  if (invalidOutput === null) {
    const message = `the model was called ${maxIterations} times without calling emit_output`;
    return { code: 'max_engine_iterations_reached', message, details: {} };
  }
  const { path, schemaPath, keyword, message } = invalidOutput;
  return { code: 'output_validation_failed', message: `the output ${message}`, details: { path, schema_path: schemaPath, keyword } };
}

export function timeoutError(timeoutMs: number): RunError {
  const seconds = timeoutMs / 1_000;
  return { code: 'timeout', message: `the run took longer than ${seconds} seconds`, details: { timeout_seconds: seconds } };
}

/**
 * A failure as the run settles with it. The limits of the run's model calls and tools end at its own deadline, so their failures race the
 * deadline's timer: past it, every failure is the timeout, whichever of the two is applied first.
 */
export function withinTime(error: RunError, { deadlineAtMs, timeoutMs }: Pick<RunContext, 'deadlineAtMs' | 'timeoutMs'>, atMs: number): RunError {
  return atMs < deadlineAtMs || error.code === 'timeout' ? error : timeoutError(timeoutMs);
}

/** The runtime adds the trace id. */
export function engineError(message: string): RunError {
  return { code: 'engine_error', message, details: {} };
}

export function sessionError(message: string): RunError {
  return { code: 'session_error', message, details: {} };
}

/** A stable code and a safe sentence; what really went wrong stands in the logs. */
export function sentenceOf({ code, message }: RunError): string {
  return `${code}: ${message}`;
}
