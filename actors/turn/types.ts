import type { EventContent } from '#shared/contracts/agent/conversation-event.ts';
import type { Failure } from '#shared/errors/switchyard-error.ts';

export interface TurnInput {
  turnId: string;
  /** When the turn began, epoch milliseconds. */
  atMs: number;
  /** How long it may take before it ends as an error. */
  timeoutMs: number;
}

export interface TurnContext {
  turnId: string;
  deadlineAtMs: number;
  /** Number of the model call that is awaited, from 1. */
  callNo: number;
}

/** Everything that can happen to a turn. Results name their call, so that a late or repeated one is recognised. */
export type TurnEventBody =
  | { type: 'message.joined' }
  | { type: 'call.completed'; callId: string; text: string; finishReason: string; model: string; provider: string }
  | { type: 'call.failed'; callId: string; failure: Failure }
  | { type: 'turn.cancel' }
  /** A command of the turn could not be applied. */
  | { type: 'turn.poisoned' }
  | { type: 'turn.deadline'; turnId: string };

/** `atMs`: when the command is applied, epoch milliseconds. What fails at or after the turn's deadline failed for its time. */
export type TurnEvent = TurnEventBody & { atMs: number };

/** What a turn asks of the runtime. The runtime carries these out in one commit; the machine itself does nothing. */
export interface TurnActions {
  /** Appends an event to the session's log. `id` is given where readers know it beforehand. */
  fact: { content: EventContent; id: string | null; metadata: Record<string, unknown> };
  /** Asks for a model call, on the log as it stands now. */
  effect: { kind: 'router-call'; id: string; deadlineAtMs: number };
  /** The call is no longer wanted: its effect is closed and its worker told. */
  supersede: { id: string };
  timer: { key: string; atMs: number };
  disarm: { key: string };
}
