import type { CommandOf } from '#bus/messages/session.ts';
import type { EventContent, EventSource } from '#shared/contracts/agent/conversation-event.ts';
import type { ErrorCode } from '#shared/errors/switchyard-error.ts';
import type { RunError, RunEventBody } from '../run/types.ts';
import type { TurnEventBody } from '../turn/types.ts';

/** A turn that is to begin: who it is, the trace of all that it appends, the configuration that it ends on. */
export interface TurnStart {
  turnId: string;
  traceId: string;
  bundleHash: string;
  traceparent: string | null;
}

export interface SessionContext {
  mode: 'auto' | 'manual';
  /** The session was made for one run and goes when that run's last delivery is settled. */
  ephemeral: boolean;
  /** An ephemeral session whose last delivery settled while a turn was in progress: it goes when that turn has ended. */
  isOver: boolean;
  /** The turn in progress, null when there is none. */
  turnId: string | null;
  /** When the last message that asked for a turn was applied, epoch milliseconds; null before the first. */
  lastMessageAtMs: number | null;
  /** The run in progress, null when there is none. */
  runId: string | null;
  /** Runs that wait for the session to be free, in the order in which they came. */
  queue: string[];
  /** The turn that messages have asked for while a run was in progress, null when none did. */
  wanted: TurnStart | null;
}

/**
 * What the runtime hands the machine: the command and what only the runtime knows. `atMs` is the time of application, the same
 * for all that one command brings about.
 */
export type SessionEvent =
  | { type: 'session.create'; command: CommandOf<'session.create'>; greeting: string | null }
  /** `problem`: why the record can't become what is wanted, null when it can. */
  | { type: 'session.patch'; command: CommandOf<'session.patch'>; problem: string | null }
  /** `unlessBusy`: what is in progress goes on, and the session stays. */
  | { type: 'session.delete'; unlessBusy: boolean }
  | { type: 'message.post'; command: CommandOf<'message.post'>; atMs: number; coalesceMs: number; newTurnId: string }
  /** `ephemeral`: the session is the run's own and begins with it. */
  | { type: 'run.start'; runId: string; ephemeral: boolean }
  | { type: 'turn.result'; event: TurnEventBody }
  | { type: 'turn.settled'; turnId: string }
  | { type: 'run.result'; event: RunEventBody }
  | { type: 'run.settled'; runId: string }
  /** The time of a run that is not over has passed; it may be in progress, wait still, or be known by its row alone. */
  | { type: 'run.expired'; runId: string; event: RunEventBody }
  /** Nothing of the session's is on its way any more. */
  | { type: 'deliveries.settled' };

/** What a session asks of the runtime, carried out in this order in one commit. */
export interface SessionActions {
  /** Makes the session's public record. */
  open: { command: CommandOf<'session.create'> };
  /** Changes the public record; the log stays as it is. */
  change: { command: CommandOf<'session.patch'> };
  /** Makes the record of a session that a run has to itself. */
  openForRun: { runId: string };
  fact: { content: EventContent; source: EventSource; metadata: Record<string, unknown>; trace: 'turn' | 'own' | 'wanted' };
  /** Begins a turn; what is appended from here on, until another begins, carries its trace. */
  beginTurn: TurnStart;
  /** Starts the turn's machine once the message that asked for it stands in the log. */
  runTurn: Record<string, never>;
  notifyTurn: { event: TurnEventBody };
  /** Starts a run's machine. */
  beginRun: { runId: string };
  notifyRun: { event: RunEventBody };
  /** The run waits: it is told when its time is over. */
  awaitRun: { runId: string };
  /** Runs that end without having begun. */
  failRuns: { runIds: readonly string[]; error: RunError };
  /** The session's rows go, but for a tombstone. What it waits for is no longer wanted. */
  erase: Record<string, never>;
  reply: { with: 'session' | 'posted-event' | 'nothing' };
  refuse: { code: ErrorCode; message: string };
}
