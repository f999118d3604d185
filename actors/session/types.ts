import type { CommandOf } from '#bus/messages/session.ts';
import type { EventContent, EventSource } from '#shared/contracts/agent/conversation-event.ts';
import type { ErrorCode } from '#shared/errors/switchyard-error.ts';
import type { RunError, RunEventBody } from '../run/types.ts';
import type { TurnEventBody } from '../turn/types.ts';

/** A turn to begin. Its events carry `traceId`; it keeps `bundleHash` until it ends. */
export interface TurnStart {
  turnId: string;
  traceId: string;
  bundleHash: string;
  traceparent: string | null;
}

export interface SessionContext {
  mode: 'auto' | 'manual';
  /** The session was made for one run and is deleted when that run's last delivery is settled. */
  ephemeral: boolean;
  /** An ephemeral session whose last delivery settled during a turn: it is deleted at the turn's end. */
  isOver: boolean;
  /** Null without a turn in progress. */
  turnId: string | null;
  /** When the last message that triggers a turn was applied, epoch milliseconds; null before the first. */
  lastMessageAtMs: number | null;
  /** Null without a run in progress. */
  runId: string | null;
  /** Runs that wait for the session, oldest first. */
  queue: string[];
  /** The turn that messages requested while a run was in progress, null when none did. */
  wanted: TurnStart | null;
}

/** A command with the inputs that only the runtime knows. `atMs` is the time of application, the same for all that follows from one command. */
export type SessionEvent =
  | { type: 'session.create'; command: CommandOf<'session.create'>; greeting: string | null }
  /** `problem`: why the patch is refused, null when it is valid. */
  | { type: 'session.patch'; command: CommandOf<'session.patch'>; problem: string | null }
  /** `unlessBusy`: keeps the session if a turn or a run is in progress. */
  | { type: 'session.delete'; unlessBusy: boolean }
  | { type: 'message.post'; command: CommandOf<'message.post'>; atMs: number; coalesceMs: number; newTurnId: string }
  /** `ephemeral`: the run creates its own session. */
  | { type: 'run.start'; runId: string; ephemeral: boolean }
  | { type: 'turn.result'; event: TurnEventBody }
  | { type: 'turn.settled'; turnId: string }
  | { type: 'run.result'; event: RunEventBody }
  | { type: 'run.settled'; runId: string }
  /** The deadline of an unsettled run. The run may be in progress, queued, or unknown to the session and stored as a row only. */
  | { type: 'run.expired'; runId: string; event: RunEventBody }
  /** No delivery of the session is outstanding. */
  | { type: 'deliveries.settled' };

/** Actions that the runtime executes, in this order, in one commit. */
export interface SessionActions {
  /** Creates the session's public record. */
  open: { command: CommandOf<'session.create'> };
  /** Changes the public record without an event. */
  change: { command: CommandOf<'session.patch'> };
  /** Creates the record of a run's ephemeral session. */
  openForRun: { runId: string };
  fact: { content: EventContent; source: EventSource; metadata: Record<string, unknown>; trace: 'turn' | 'own' | 'wanted' };
  /** Begins a turn; events appended until the next turn carry its trace. */
  beginTurn: TurnStart;
  /** Starts the turn's machine, after its message is in the log. */
  runTurn: Record<string, never>;
  notifyTurn: { event: TurnEventBody };
  beginRun: { runId: string };
  notifyRun: { event: RunEventBody };
  /** The run waits: arms its deadline timer. */
  awaitRun: { runId: string };
  /** Settles runs as failed that never began. */
  failRuns: { runIds: readonly string[]; error: RunError };
  /** Deletes the session's rows except for a tombstone, and drops the state of a turn or run. */
  erase: Record<string, never>;
  reply: { with: 'session' | 'posted-event' | 'nothing' };
  refuse: { code: ErrorCode; message: string };
}
