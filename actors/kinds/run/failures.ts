import type { RunError } from '#shared/contracts/agent/run-error.ts';
import type { LoopFailure, LossReason } from '../../tool-loop/types.ts';
import type { RunContext } from './types.ts';

const LOSSES: Record<LossReason, string> = { unreachable: 'can not be reached', auth_failed: "refuses the agent's credentials" };

/** The run's error for a failure of its loop. */
export function errorOf(failure: LoopFailure, { timeoutMs }: RunContext): RunError {
  switch (failure.type) {
    case 'call-failed':
      // A model call's only time limit is the run's deadline, so `router.timeout` is that deadline by the worker's clock.
      return failure.code === 'router.timeout' ? timeoutError(timeoutMs) : engineError(`the model call failed (${failure.code})`);
    case 'unusable':
      return engineError(`the model gave no usable answer (${failure.finishReason})`);
    case 'server-unlisted':
      return failure.atDeadline ? timeoutError(timeoutMs) : toolError(`the tool server ${failure.server}`, `${failure.server}:*`, failure.reason);
    case 'tool-missing':
      return {
        code: 'tool_error',
        message: `a step needs the tool ${failure.toolId}, which its server does not have`,
        details: { tool_id: failure.toolId, reason: 'missing' },
      };
    case 'server-lost':
      return toolError(`the server of the tool ${failure.toolId}`, failure.toolId, failure.reason);
  }
}

/** @param toolId `server:*` when the whole server is unavailable */
function toolError(subject: string, toolId: string, reason: LossReason): RunError {
  return { code: 'tool_error', message: `${subject} ${LOSSES[reason]}`, details: { tool_id: toolId, reason } };
}

/** An invalid output is a better explanation than the used-up iterations. */
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
 * The error that the run settles with. Model calls and tools time out at the run's deadline, so their failures race its timer: from the deadline on
 * every failure becomes the timeout, whichever is applied first.
 */
export function withinTime(error: RunError, { deadlineAtMs, timeoutMs }: Pick<RunContext, 'deadlineAtMs' | 'timeoutMs'>, atMs: number): RunError {
  return atMs < deadlineAtMs || error.code === 'timeout' ? error : timeoutError(timeoutMs);
}

/** The runtime adds the trace id to the details. */
export function engineError(message: string): RunError {
  return { code: 'engine_error', message, details: {} };
}

export const cancelledError: RunError = { code: 'engine_error', message: 'the run was cancelled', details: { reason: 'cancelled' } };

export function sessionError(message: string): RunError {
  return { code: 'session_error', message, details: {} };
}

/** A stable code and a sentence that is safe to show; the cause is in the logs. */
export function sentenceOf({ code, message }: RunError): string {
  return `${code}: ${message}`;
}
