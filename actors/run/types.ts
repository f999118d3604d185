import type { CommandOf } from '#bus/messages/session.ts';
import type { EventContent } from '#shared/contracts/agent/conversation-event.ts';
import type { Failure } from '#shared/errors/switchyard-error.ts';
import type { Violation } from '#shared/schema/violation.ts';

/** `error.code` of the contract, as callbacks and readers of the run get it. */
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
  /** Start, epoch milliseconds. */
  atMs: number;
  /** Epoch milliseconds: start plus the run's time limit, or its expiry since acceptance, whichever is earlier. */
  deadlineAtMs: number;
  /** The run's own time limit, for the error's details. */
  timeoutMs: number;
  /** Iterations within which the model must emit a valid output. */
  maxIterations: number;
  /** Tool servers of the routine's tools; empty without tools. */
  servers: readonly string[];
  hasFallbackModel: boolean;
  /** Fails the run at its start; null when the run can begin. */
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
  /** Number of the current iteration, from 1; 0 before the first. */
  iteration: number;
  /** Unusable replies in this iteration: 0 first try, 1 the same model again, 2 the fallback model. */
  unusable: number;
  /** Effects opened so far; the last one's id is `<run>-<effectNo>`. */
  effectNo: number;
  /** Messages staged so far, so the number of the next. */
  stepCount: number;
  /** By server: the hash of its tool list, fixed at the run's start. */
  lists: Record<string, string>;
  unavailable: Record<string, 'unreachable' | 'auth_failed'>;
  /** Unsettled tool calls of the current batch. */
  pending: { callId: string; toolCallId: string; toolId: string }[];
  /** All tool calls of the batch in the model's order, refused ones included. */
  batch: { toolCallId: string; toolId: string }[];
  /** First schema violation of the last `emit_output`, null when there is none. */
  invalidOutput: Violation | null;
  /** Why the run failed or will fail at its start; null otherwise. */
  failure: RunError | null;
}

/** A message of the transcript: stored as a row, and sent to the model without `result`. */
export type StepMessage =
  | { role: 'assistant'; content: string | null; tool_calls?: { id: string; type: 'function'; function: { name: string; arguments: string } }[] }
  | { role: 'user'; content: string }
  | {
      role: 'tool';
      tool_call_id: string;
      content: string;
      /** For the event log's `tool` event; null for calls that were never sent (refused calls, `emit_output`). */
      result: { data: unknown; metadata: Record<string, unknown> } | null;
    };

/** A model's reply, validated against the routine's schemas and tools (actors/engine/read-run-reply.ts). */
export type RunReply =
  /** `emit_output` with a valid value: the run succeeds. */
  | { type: 'output'; output: Record<string, unknown> }
  /** `emit_output` with an invalid value. `messages`, to be staged: the reply and the refusal. */
  | { type: 'invalid-output'; violation: Violation; messages: StepMessage[] }
  /**
   * Tool calls. `messages`: the reply, then a tool message for each refused call (unknown function, arguments that are not JSON or break the tool's
   * schema, a repeat, one too many). `calls`: those to be made. `order`: all of them, in the model's order.
   */
  | {
      type: 'tools';
      messages: StepMessage[];
      calls: { toolCallId: string; toolId: string; listHash: string }[];
      order: { toolCallId: string; toolId: string }[];
    }
  /** Plain text. `messages`: the reply and the reminder to call a function. */
  | { type: 'text'; messages: StepMessage[] }
  /** Empty, cut off or filtered. Nothing is staged. */
  | { type: 'unusable'; finishReason: string };

export type ToolOutcome = CommandOf<'tool.completed'>['outcome'];

/** Result of an effect. `callId` names the effect, so that late and repeated results are recognised. */
export type RunResult =
  /** `timedOut`: the listing's own time limit ended it, so `unavailable` is no evidence about the servers. */
  | { type: 'tools.listed'; callId: string; lists: Record<string, string>; unavailable: RunContext['unavailable']; timedOut: boolean }
  | { type: 'call.replied'; callId: string; reply: RunReply }
  | { type: 'call.failed'; callId: string; failure: Failure }
  | { type: 'tool.settled'; callId: string; outcome: ToolOutcome };

export type RunEventBody =
  | RunResult
  | { type: 'run.deadline'; turnId: string }
  /** A command of the run could not be applied. */
  | { type: 'run.poisoned' }
  /** The session is being deleted. */
  | { type: 'run.orphaned' };

/** `atMs`: when the command is applied, epoch milliseconds. A failure at or after the run's deadline counts as the timeout. */
export type RunEvent = RunEventBody & { atMs: number };

/** Actions that the runtime executes, in this order, in one commit; the machine itself has no side effects. */
export interface RunActions {
  /** Sets `started_at`. */
  started: Record<string, never>;
  /** Appends an event, under the run's trace, to the session's log. */
  fact: { content: EventContent; id: null; metadata: Record<string, unknown> };
  /** Adds a message to the transcript, numbered by `stepCount` before it. */
  stage: { message: StepMessage };
  /** Appends one `tool` event for the whole batch, from the staged results, in this order. */
  toolEvent: { calls: { toolCallId: string; toolId: string }[] };
  effect:
    | {
        kind: 'router-call';
        id: string;
        deadlineAtMs: number;
        /** Length of the transcript that the call is rendered from. */
        stepCount: number;
        useFallbackModel: boolean;
        lists: Record<string, string>;
      }
    | { kind: 'tool-list'; id: string; deadlineAtMs: number; servers: readonly string[] }
    /** The arguments are in the staged message with the tool call. */
    | { kind: 'tool-call'; id: string; deadlineAtMs: number; toolCallId: string; toolId: string; listHash: string };
  /** Closes an effect and aborts its worker's call. */
  supersede: { id: string };
  timer: { key: string; atMs: number; command: 'run.deadline' | { type: 'effect.overdue'; callId: string; kind: 'tool-call' | 'tool-list' } };
  disarm: { key: string };
  settle: { state: 'succeeded'; output: Record<string, unknown> } | { state: 'failed'; error: RunError };
}
