import type { CommandOf } from '#bus/messages/session.ts';
import type { EventContent, EventSource } from '#shared/contracts/agent/conversation-event.ts';
import type { ErrorCode } from '#shared/errors/switchyard-error.ts';
import type { TurnEvent } from '../turn/types.ts';

export interface SessionContext {
  mode: 'auto' | 'manual';
  /** The turn in progress, null when there is none. */
  turnId: string | null;
  /** When the last message that asked for a turn was applied, epoch milliseconds; null before the first. */
  lastMessageAtMs: number | null;
}

/**
 * What the runtime hands the machine: the command and what only the runtime knows. `atMs` is the time of application, the same
 * for all that one command brings about.
 */
export type SessionEvent =
  | { type: 'session.create'; command: CommandOf<'session.create'>; greeting: string | null }
  | { type: 'message.post'; command: CommandOf<'message.post'>; atMs: number; coalesceMs: number; newTurnId: string }
  | { type: 'turn.settled'; turnId: string }
  | { type: 'turn.result'; event: TurnEvent };

/** What a session asks of the runtime, carried out in this order in one commit. */
export interface SessionActions {
  /** Makes the session's public record. */
  open: { command: CommandOf<'session.create'> };
  fact: { content: EventContent; source: EventSource; metadata: Record<string, unknown>; trace: 'turn' | 'own' };
  /** Begins a turn; what is appended from here on, until another begins, carries its trace. */
  beginTurn: { turnId: string; traceId: string; bundleHash: string };
  tellTurn: { event: TurnEvent };
  /** Starts the turn's machine once the message that asked for it stands in the log. */
  runTurn: Record<string, never>;
  answer: { with: 'session' | 'posted-event' };
  refuse: { code: ErrorCode; message: string };
}
