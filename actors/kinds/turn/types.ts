import type { EventContent } from '#shared/contracts/agent/conversation-event.ts';
import type { CallFailed, LoopActions, Replied } from '../../tool-loop/types.ts';
import type { ComposedReply } from './steps/compose-reply.ts';

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
  /** Number of the awaited model call, from 1; 0 before the first. */
  callNo: number;
  /** Why the turn has failed, safe to show. A turn that goes on has none. */
  failure?: string;
}

export type TurnEventBody =
  | { type: 'message.joined' }
  | Replied<ComposedReply>
  | CallFailed
  | { type: 'turn.cancel' }
  | { type: 'turn.poisoned' }
  | { type: 'turn.deadline'; turnId: string };

/** `atMs`: time of application, epoch ms. From the turn's deadline on, failures count as the timeout. */
export type TurnEvent = TurnEventBody & { atMs: number };

/** Executed by the runtime in one commit. */
export interface TurnActions extends Pick<LoopActions, 'supersede' | 'disarm'> {
  /** Appends to the session's log. `id`: null for a new one. */
  fact: { content: EventContent; id: string | null; metadata: Record<string, unknown> };
  /** Opens a model call on the log so far. */
  effect: { kind: 'router-call'; id: string; deadlineAtMs: number };
  timer: { key: string; atMs: number };
}
