import type { CommandOf } from '#bus/messages/session.ts';
import type { EventContent } from '#shared/contracts/agent/conversation-event.ts';
import type { Failure } from '#shared/errors/switchyard-error.ts';
import type { Violation } from '#shared/schema/violation.ts';

/** `error.code` of the contract. */
type RunErrorCode =
  | 'timeout'
  | 'engine_error'
  | 'tool_error'
  | 'output_validation_failed'
  | 'input_validation_failed'
  | 'session_error'
  | 'max_engine_iterations_reached';

export interface RunError {
  code: RunErrorCode;
  message: string;
  details: Record<string, unknown>;
}

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

export interface RunContext {
  runId: string;
  startedAtMs: number;
  deadlineAtMs: number;
  timeoutMs: number;
  maxIterations: number;
  hasFallbackModel: boolean;
  servers: readonly string[];
  /** Number of the iteration, from 1; 0 before the first. */
  iteration: number;
  /** Unusable replies in this iteration: 1 repeats with the same model, 2 with the fallback model. */
  unusable: number;
  /** Effects opened so far; the last id is `<run>-<effectNo>`. */
  effectNo: number;
  /** Messages staged so far. */
  stepCount: number;
  /** By server: hash of its tool list, fixed at the run's start. */
  lists: Record<string, string>;
  unavailable: Record<string, 'unreachable' | 'auth_failed'>;
  /** Unsettled tool calls of the batch. */
  pending: { callId: string; toolCallId: string; toolId: string }[];
  /** All tool calls of the batch in the model's order, refused ones too. */
  batch: { toolCallId: string; toolId: string }[];
  /** First schema violation of the last `emit_output`, if invalid. */
  invalidOutput: Violation | null;
  /** Null until the run has failed, or will at its start. */
  failure: RunError | null;
}

/** A stored message of the transcript; the model gets it without `result`. */
export type StepMessage =
  | { role: 'assistant'; content: string | null; tool_calls?: { id: string; type: 'function'; function: { name: string; arguments: string } }[] }
  | { role: 'user'; content: string }
  | {
      role: 'tool';
      tool_call_id: string;
      content: string;
      /** For the `tool` event; null for calls never sent (refused calls, `emit_output`). */
      result: { data: unknown; metadata: Record<string, unknown> } | null;
    };

/** A reply validated against the routine (actors/engine/read-run-reply.ts). `messages` are staged. */
export type RunReply =
  /** `emit_output`, valid: the run succeeds. */
  | { type: 'output'; output: Record<string, unknown> }
  /** `emit_output`, invalid. `messages`: the reply and the refusal. */
  | { type: 'invalid-output'; violation: Violation; messages: StepMessage[] }
  /**
   * `messages`: the reply, then one per refused call (unknown function, arguments that are not JSON or break the schema, a repeat, one too many).
   * `calls`: those to be made. `order`: all, in the model's order.
   */
  | {
      type: 'tools';
      messages: StepMessage[];
      calls: { toolCallId: string; toolId: string; listHash: string }[];
      order: { toolCallId: string; toolId: string }[];
    }
  /** Plain text. `messages`: the reply and the reminder to call a function. */
  | { type: 'text'; messages: StepMessage[] }
  /** Empty, cut off or filtered. */
  | { type: 'unusable'; finishReason: string };

export type ToolOutcome = CommandOf<'tool.completed'>['outcome'];

/** An effect's result; `callId` exposes late and repeated ones. */
export type RunResult =
  /** `timedOut`: by the listing's own time limit; `unavailable` then says nothing about the servers. */
  | { type: 'tools.listed'; callId: string; lists: Record<string, string>; unavailable: RunContext['unavailable']; timedOut: boolean }
  | { type: 'call.replied'; callId: string; reply: RunReply }
  | { type: 'call.failed'; callId: string; failure: Failure }
  | { type: 'tool.settled'; callId: string; outcome: ToolOutcome };

export type RunEventBody =
  | RunResult
  | { type: 'run.deadline'; actorId: string }
  | { type: 'run.poisoned' }
  /** The session is being deleted. */
  | { type: 'run.orphaned' };

/** `atMs`: time of application, epoch ms. From the run's deadline on, failures count as the timeout. */
export type RunEvent = RunEventBody & { atMs: number };

/** Executed by the runtime, in this order, in one commit. */
export interface RunActions {
  /** Sets `started_at`. */
  started: Record<string, never>;
  /** Appends to the session's log, under the run's trace. */
  fact: { content: EventContent; id: null; metadata: Record<string, unknown> };
  /** Adds a message to the transcript, numbered by the previous `stepCount`. */
  stage: { message: StepMessage };
  /** Appends one `tool` event for the batch, in this order, from the staged results. */
  toolEvent: { calls: { toolCallId: string; toolId: string }[] };
  effect:
    | {
        kind: 'router-call';
        id: string;
        deadlineAtMs: number;
        /** The call is rendered from so many messages of the transcript. */
        stepCount: number;
        useFallbackModel: boolean;
        lists: Record<string, string>;
      }
    | { kind: 'tool-list'; id: string; deadlineAtMs: number; servers: readonly string[] }
    /** Arguments: in the staged message with the call. */
    | { kind: 'tool-call'; id: string; deadlineAtMs: number; toolCallId: string; toolId: string; listHash: string };
  /** Closes an effect and aborts it at its worker. */
  supersede: { id: string };
  timer: { key: string; atMs: number; command: 'run.deadline' | { type: 'effect.overdue'; callId: string; kind: 'tool-call' | 'tool-list' } };
  disarm: { key: string };
  settle: { state: 'succeeded'; output: Record<string, unknown> } | { state: 'failed'; error: RunError };
}
