import type { EventContent } from '#shared/contracts/agent/conversation-event.ts';
import type { Failure } from '#shared/errors/switchyard-error.ts';

export interface TurnInput {
  turnId: string;
  /** Start, epoch ms. */
  atMs: number;
  /** Time from the start until the turn fails. */
  timeoutMs: number;
}

export interface TurnContext {
  turnId: string;
  deadlineAtMs: number;
  /** Number of the awaited model call, from 1. */
  callNo: number;
}

/** `callId` exposes late and repeated results. */
export type TurnEventBody =
  | { type: 'message.joined' }
  | { type: 'call.completed'; callId: string; text: string; finishReason: string; model: string; provider: string }
  | { type: 'call.failed'; callId: string; failure: Failure }
  | { type: 'turn.cancel' }
  | { type: 'turn.poisoned' }
  | { type: 'turn.deadline'; turnId: string };

/** `atMs`: time of application, epoch ms. From the turn's deadline on, failures count as the timeout. */
export type TurnEvent = TurnEventBody & { atMs: number };

/** Executed by the runtime in one commit. */
export interface TurnActions {
  /** Appends to the session's log. `id`: null for a new one. */
  fact: { content: EventContent; id: string | null; metadata: Record<string, unknown> };
  /** Opens a model call on the log so far. */
  effect: { kind: 'router-call'; id: string; deadlineAtMs: number };
  /** Closes the call's effect and aborts it at its worker. */
  supersede: { id: string };
  timer: { key: string; atMs: number };
  disarm: { key: string };
}
