import type { RunError } from '#shared/contracts/agent/run-error.ts';
import type { Violation } from '#shared/schema/violation.ts';
import type { LoopActions, LoopContext, LoopResult, StepMessage, ToolsReply } from '../../tool-loop/types.ts';

export interface RunInput {
  runId: string;
  /** Start, epoch ms. */
  atMs: number;
  /** Epoch ms: start plus time limit, or the expiry since acceptance if earlier. */
  deadlineAtMs: number;
  /** The run's own time limit, for error details. */
  timeoutMs: number;
  /** Iterations within which the model must emit a valid output. */
  maxIterations: number;
  servers: readonly string[];
  hasFallbackModel: boolean;
  /** Fails the run at its start; null when it can begin. */
  refusal: RunError | null;
}

/** Unusable replies in an iteration: 1 repeats with the same model, 2 with the fallback model. */
export interface RunContext extends LoopContext {
  runId: string;
  timeoutMs: number;
  hasFallbackModel: boolean;
  /** First schema violation of the last `emit_output`, if invalid. */
  invalidOutput: Violation | null;
  /** Null until the run has failed, or will at its start. */
  failure: RunError | null;
}

/** A reply validated against the routine (actors/engine/read-run-reply.ts). `messages` are staged. */
export type RunReply =
  /** `emit_output`, valid: the run succeeds. */
  | { type: 'output'; output: Record<string, unknown> }
  /** `emit_output`, invalid. `messages`: the reply and the refusal. */
  | { type: 'invalid-output'; violation: Violation; messages: StepMessage[] }
  | ToolsReply
  /** Plain text. `messages`: the reply and the reminder to call a function. */
  | { type: 'text'; messages: StepMessage[] }
  /** Empty, cut off or filtered. */
  | { type: 'unusable'; finishReason: string };

export type RunResult = LoopResult<RunReply>;

export type RunEventBody =
  | RunResult
  | { type: 'run.deadline'; actorId: string }
  | { type: 'run.poisoned' }
  /** The session is being deleted. */
  | { type: 'run.orphaned' }
  /** `claimed`: pending tool calls that have begun and must not be repeated; the run waits for their outcomes, which stand in its log. */
  | { type: 'run.cancel'; claimed: readonly string[] };

/** `atMs`: time of application, epoch ms. From the run's deadline on, failures count as the timeout. */
export type RunEvent = RunEventBody & { atMs: number };

/** Executed by the runtime, in this order, in one commit. Facts are appended under the run's trace. */
export interface RunActions extends Omit<LoopActions, 'effect' | 'timer'> {
  /** Sets `started_at`. */
  started: Record<string, never>;
  effect:
    | LoopActions['effect']
    | {
        kind: 'router-call';
        id: string;
        deadlineAtMs: number;
        /** The call is rendered from so many messages of the transcript. */
        stepCount: number;
        useFallbackModel: boolean;
        lists: Record<string, string>;
      };
  timer: LoopActions['timer'] | { key: string; atMs: number; command: 'run.deadline' };
  settle: { state: 'succeeded'; output: Record<string, unknown> } | { state: 'failed'; error: RunError };
}
