import type { EventContent } from '#shared/contracts/agent/conversation-event.ts';
import type { Failure } from '#shared/errors/switchyard-error.ts';

export interface TurnInput {
  turnId: string;
  /** Start, epoch milliseconds. */
  atMs: number;
  /** From the start until the turn fails. */
  timeoutMs: number;
}

export interface TurnContext {
  turnId: string;
  deadlineAtMs: number;
  /** Number of the awaited model call, from 1. */
  callNo: number;
}

/** `callId` names the call that a result belongs to, so that late and repeated results are recognised. */
export type TurnEventBody =
  | { type: 'message.joined' }
  | { type: 'call.completed'; callId: string; text: string; finishReason: string; model: string; provider: string }
  | { type: 'call.failed'; callId: string; failure: Failure }
  | { type: 'turn.cancel' }
  /** A command of the turn could not be applied. */
  | { type: 'turn.poisoned' }
  | { type: 'turn.deadline'; turnId: string };

/** `atMs`: when the command is applied, epoch milliseconds. A failure at or after the turn's deadline counts as the timeout. */
export type TurnEvent = TurnEventBody & { atMs: number };

/** Actions that the runtime executes in one commit; the machine itself has no side effects. */
export interface TurnActions {
  /** Appends an event to the session's log. `id`: set when readers know it beforehand, null for a new one. */
  fact: { content: EventContent; id: string | null; metadata: Record<string, unknown> };
  /** Opens a model call on the log as it is now. */
  effect: { kind: 'router-call'; id: string; deadlineAtMs: number };
  /** Closes the call's effect and aborts it at its worker. */
  supersede: { id: string };
  timer: { key: string; atMs: number };
  disarm: { key: string };
}
