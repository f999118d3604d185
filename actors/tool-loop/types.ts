import type { CommandOf } from '#bus/messages/session.ts';
import type { EventContent } from '#shared/contracts/agent/conversation-event.ts';
import type { ErrorCode, Failure } from '#shared/errors/switchyard-error.ts';

/** A stored message of the transcript; the model gets it without `result`. */
export type StepMessage =
  | { role: 'assistant'; content: string | null; tool_calls?: { id: string; type: 'function'; function: { name: string; arguments: string } }[] }
  | { role: 'user'; content: string }
  | {
      role: 'tool';
      tool_call_id: string;
      content: string;
      /** For the `tool` event; null for calls never sent (refused calls, functions that are no tools). */
      result: { data: unknown; metadata: Record<string, unknown> } | null;
    };

/** A reply with tool calls, validated against the tools (actors/engine/read-tool-calls.ts). */
export interface ToolsReply {
  type: 'tools';
  /** The reply, then one per refused call (unknown function, arguments that are not JSON or break the schema, a repeat, one too many). */
  messages: StepMessage[];
  /** Those to be made. */
  calls: { toolCallId: string; toolId: string; listHash: string }[];
  /** All, in the model's order. */
  order: { toolCallId: string; toolId: string }[];
}

/** What a reply means where no tools can be called. */
export type AskReply =
  | { type: 'end' }
  /** Asked again in the same iteration, as long as there is a model to ask. */
  | { type: 'unusable'; finishReason: string };

/** What a reply means to the loop. `messages` are staged. */
export type LoopReply =
  | AskReply
  | ToolsReply
  /** The model is asked again, as the next iteration. */
  | { type: 'again'; messages: readonly StepMessage[] };

export type ToolOutcome = CommandOf<'tool.completed'>['outcome'];

/** Why a tool server is lost. */
export type LossReason = 'unreachable' | 'auth_failed';

/** An effect's result; `callId` exposes late and repeated ones. */
export type LoopResult<Reply> = Replied<Reply> | CallFailed | ToolsListed | ToolSettled;

export interface Replied<Reply> {
  type: 'call.replied';
  callId: string;
  reply: Reply;
}

export interface CallFailed {
  type: 'call.failed';
  callId: string;
  failure: Failure;
}

export interface ToolsListed {
  type: 'tools.listed';
  callId: string;
  /** By server: hash of its tool list. */
  lists: Record<string, string>;
  unavailable: Record<string, LossReason>;
  /** By the listing's own time limit; `unavailable` then says nothing about the servers. */
  timedOut: boolean;
  /** A tool that the loop needs and no list has; null and absent: there is none. */
  missingTool?: string | null;
}

export interface ToolSettled {
  type: 'tool.settled';
  callId: string;
  outcome: ToolOutcome;
}

/** With the time of application, epoch ms. */
export type Applied<Result> = Result & { atMs: number };

/** What the loop keeps while it asks. */
export interface AskContext {
  /** Effects opened so far; the last id is `<actor>-<effectNo>`. */
  effectNo: number;
  /** Unusable replies in this iteration. */
  unusable: number;
}

/** What the loop keeps with tools. */
export interface LoopContext extends AskContext {
  startedAtMs: number;
  deadlineAtMs: number;
  maxIterations: number;
  servers: readonly string[];
  /** Number of the iteration, from 1; 0 before the first. */
  iteration: number;
  /** Messages staged so far. */
  stepCount: number;
  /** By server: hash of its tool list, fixed at the loop's start. */
  lists: Record<string, string>;
  unavailable: Record<string, LossReason>;
  /** Unsettled tool calls of the batch. */
  pending: { callId: string; toolCallId: string; toolId: string }[];
  /** All tool calls of the batch in the model's order, refused ones too. */
  batch: { toolCallId: string; toolId: string }[];
}

/** Why asking can not go on. */
export type AskFailure =
  | { type: 'call-failed'; code: ErrorCode }
  /** By every model that the iteration may ask. */
  | { type: 'unusable'; finishReason: string };

/** Why the loop can not go on. */
export type LoopFailure =
  | AskFailure
  /** `atDeadline`: the listing was ended by the actor's own deadline. */
  | { type: 'server-unlisted'; server: string; reason: LossReason; atDeadline: boolean }
  | { type: 'tool-missing'; toolId: string }
  | { type: 'server-lost'; toolId: string; reason: LossReason };

/** Executed by the runtime, in this order, in one commit. */
export interface LoopActions {
  fact: { content: EventContent; id: null; metadata: Record<string, unknown> };
  /** Adds a message to the transcript, numbered by the previous `stepCount`. */
  stage: { message: StepMessage };
  /** Appends one `tool` event for the batch, in this order, from the staged results. */
  toolEvent: { calls: { toolCallId: string; toolId: string }[] };
  effect:
    | { kind: 'tool-list'; id: string; deadlineAtMs: number; servers: readonly string[] }
    /** Arguments: in the staged message with the call. */
    | { kind: 'tool-call'; id: string; deadlineAtMs: number; toolCallId: string; toolId: string; listHash: string };
  /** Closes an effect and aborts it at its worker. */
  supersede: { id: string };
  timer: { key: string; atMs: number; command: { type: 'effect.overdue'; callId: string; kind: 'tool-call' | 'tool-list' } };
  disarm: { key: string };
}
