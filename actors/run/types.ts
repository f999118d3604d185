import type { CommandOf } from '#bus/messages/session.ts';
import type { EventContent } from '#shared/contracts/agent/conversation-event.ts';
import type { Failure } from '#shared/errors/switchyard-error.ts';
import type { Violation } from '#shared/schema/violation.ts';

/** Why a run failed, as callbacks and readers of the run learn it (`error.code` of the contract). */
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
  /** When it starts, epoch milliseconds. */
  atMs: number;
  /** Absolute: the run's own time limit, or the end of the time since its acceptance, whichever comes first. */
  deadlineAtMs: number;
  /** Of the run's own time limit, for the error's details. */
  timeoutMs: number;
  /** Model calls that the run may make until it must have called `emit_output`. */
  maxIterations: number;
  /** Tool servers whose tools the routine may use; none for a routine without tools. */
  servers: readonly string[];
  /** Whether the configuration names another model to fall back to. */
  hasFallbackModel: boolean;
  /** What is wrong with the run before it begins, null when nothing is: it then fails at once. */
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
  /** Number of the model call that counts, from 1; 0 before the first. */
  iteration: number;
  /** How often the model's answer of this iteration was unusable: 0 first try, 1 the same model again, 2 the fallback model. */
  unusable: number;
  /** Effects asked for so far; the last one's id is `<run>-<effectNo>`. */
  effectNo: number;
  /** Messages staged so far: the next one gets this number. */
  stepCount: number;
  /** By server: the hash of its tool list, fixed when the run began. */
  lists: Record<string, string>;
  unavailable: Record<string, 'unreachable' | 'auth_failed'>;
  /** Tool calls of the batch in progress that have not settled. */
  pending: { callId: string; toolCallId: string; toolId: string }[];
  /** All tool calls of the batch, in the order in which the model asked for them, those that were refused unasked included. */
  batch: { toolCallId: string; toolId: string }[];
  /** Whether the last `emit_output` broke the schema, and where first. */
  invalidOutput: Violation | null;
  /** Why the run failed, or fails as soon as it begins; null as long as nothing is wrong. */
  failure: RunError | null;
}

/** A message of the run's transcript, stored as a row and sent to the model as it is (without `result`). */
export type StepMessage =
  | { role: 'assistant'; content: string | null; tool_calls?: { id: string; type: 'function'; function: { name: string; arguments: string } }[] }
  | { role: 'user'; content: string }
  | {
      role: 'tool';
      tool_call_id: string;
      content: string;
      /** For the log's `tool` event; null for what never left the house (refused calls, `emit_output`). */
      result: { data: unknown; metadata: Record<string, unknown> } | null;
    };

/** A model's answer, read against the routine's schemas and tools (actors/engine/read-run-reply.ts). */
export type RunReply =
  /** `emit_output` with a valid value: the run is done. */
  | { type: 'output'; output: Record<string, unknown> }
  /** `emit_output` with an invalid one. `messages`: the answer and what it is told, to be staged. */
  | { type: 'invalid-output'; violation: Violation; messages: StepMessage[] }
  /**
   * Tools. `messages`: the answer, then a tool message for every call that is refused without being made (unknown function, arguments
   * that are no JSON or break the tool's schema, one too many). `calls`: those to be made. `order`: all of them, as asked for.
   */
  | {
      type: 'tools';
      messages: StepMessage[];
      calls: { toolCallId: string; toolId: string; listHash: string }[];
      order: { toolCallId: string; toolId: string }[];
    }
  /** Plain text. `messages`: the answer and the reminder. */
  | { type: 'text'; messages: StepMessage[] }
  /** Nothing that could be used: empty, cut off, filtered. Nothing is staged. */
  | { type: 'unusable'; finishReason: string };

export type ToolOutcome = CommandOf<'tool.completed'>['outcome'];

/** What comes of an effect. It names the effect, so that a late or repeated one is recognised. */
export type RunResult =
  /** `timedOut`: the list's own time limit ended it, so `unavailable` says nothing about the servers. */
  | { type: 'tools.listed'; callId: string; lists: Record<string, string>; unavailable: RunContext['unavailable']; timedOut: boolean }
  | { type: 'call.replied'; callId: string; reply: RunReply }
  | { type: 'call.failed'; callId: string; failure: Failure }
  | { type: 'tool.settled'; callId: string; outcome: ToolOutcome };

/** Everything that can happen to a run. */
export type RunEventBody =
  | RunResult
  | { type: 'run.deadline'; turnId: string }
  /** A command of the run could not be applied. */
  | { type: 'run.poisoned' }
  /** The session is being deleted under it. */
  | { type: 'run.orphaned' };

/** `atMs`: when the command is applied, epoch milliseconds. What fails at or after the run's deadline failed for its time. */
export type RunEvent = RunEventBody & { atMs: number };

/** What a run asks of the runtime, carried out in this order in one commit; the machine itself does nothing. */
export interface RunActions {
  /** Sets `started_at`. */
  started: Record<string, never>;
  /** Appends an event to the session's log under the run's trace. */
  fact: { content: EventContent; id: null; metadata: Record<string, unknown> };
  /** Adds a message to the transcript; its number is `stepCount` as it was before. */
  stage: { message: StepMessage };
  /** Appends one `tool` event for a whole batch, from the staged results, in this order. */
  toolEvent: { calls: { toolCallId: string; toolId: string }[] };
  effect:
    | {
        kind: 'router-call';
        id: string;
        deadlineAtMs: number;
        /** The transcript up to here, exclusive. */
        stepCount: number;
        useFallbackModel: boolean;
        lists: Record<string, string>;
      }
    | { kind: 'tool-list'; id: string; deadlineAtMs: number; servers: readonly string[] }
    /** The arguments stand in the staged message that has the tool call. */
    | { kind: 'tool-call'; id: string; deadlineAtMs: number; toolCallId: string; toolId: string; listHash: string };
  /** An effect is no longer wanted: it is closed and its worker told. */
  supersede: { id: string };
  timer: { key: string; atMs: number; command: 'run.deadline' | { type: 'effect.overdue'; callId: string; kind: 'tool-call' | 'tool-list' } };
  disarm: { key: string };
  settle: { state: 'succeeded'; output: Record<string, unknown> } | { state: 'failed'; error: RunError };
}
