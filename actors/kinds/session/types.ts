import type { CommandOf, ModerationMode } from '#bus/messages/session.ts';
import type { ConversationEvent, EventContent, EventSource } from '#shared/contracts/agent/conversation-event.ts';
import type { RunError } from '#shared/contracts/agent/run-error.ts';
import type { ErrorCode } from '#shared/errors/switchyard-error.ts';
import type { CarriedContext } from '#shared/telemetry/carried-context.ts';
import type { RunEventBody } from '../run/types.ts';
import type { TurnEventBody } from '../turn/types.ts';

/** A turn to begin. Its events carry `traceId`; `bundleHash` stays until its end. */
export interface TurnStart {
  turnId: string;
  traceId: string;
  bundleHash: string;
  traceparent: string | null;
  /** What its caller sent beside `traceparent`. Absent: nothing. */
  carried?: CarriedContext;
  /** Of a turn that waits: the routine that its messages are most like. Absent: they are like none, or nothing asks for it. */
  likeliest?: string;
  /** Of a turn that waits: the offset of its first event. Absent: stored by a release before. */
  offset?: number;
  /** Of a turn that waits: one of its messages could not be checked by moderation. Absent: none. */
  isUnmoderated?: true;
}

/** An event that a command appends. */
export interface PostedEvent {
  content: EventContent;
  source: EventSource;
  metadata: Record<string, unknown>;
  /** The turn that it requests; null: none. */
  turn: Omit<TurnStart, 'turnId'> | null;
  /** Within the coalescing window it joins the turn in progress instead of cancelling it. */
  joins: boolean;
  /** How its text is checked before models see it; null: it is not. */
  moderation: ModerationMode | null;
}

/** The check of a message by moderation. */
export interface MessageCheck {
  callId: string;
  eventId: string;
  mode: ModerationMode;
}

/** A refusal of a command that changes stored events. */
interface Refusal {
  code: ErrorCode;
  message: string;
}

/** Stored events that a command deletes. */
interface CutRange {
  from: number;
  /** Exclusive: the end of the log before the command. */
  to: number;
}

export interface SessionContext {
  mode: 'auto' | 'manual';
  /** Made for one run, and deleted when no delivery is open any more, of that run or of a later one. */
  ephemeral: boolean;
  /** Of an ephemeral session: its open deliveries. Absent: none, or not known, as in snapshots of earlier commits, until its next round. */
  deliveries?: string[];
  /** Ephemeral, and its last delivery settled during a turn: deleted at the turn's end. */
  isOver: boolean;
  turnId: string | null;
  /** Last event that requested a turn, epoch ms; null before the first. */
  lastMessageAtMs: number | null;
  runId: string | null;
  /** Waiting runs, oldest first. */
  queue: string[];
  /** The turn that events requested during a run, or during a cancelled turn that has not ended. Begins under another id. Null in manual mode, but in snapshots of a release before. */
  wanted: TurnStart | null;
  /** Awaited checks of messages, oldest first. */
  checks: string[];
}

/** A command with the inputs that only the runtime has. `atMs`: time of application. */
export type SessionEvent =
  | { type: 'session.create'; command: CommandOf<'session.create'>; greeting: string | null }
  /** `problem`: null when the patch is valid. */
  | { type: 'session.patch'; command: CommandOf<'session.patch'>; problem: string | null }
  /** `unlessBusy`: only without a turn or run in progress. */
  | { type: 'session.delete'; unlessBusy: boolean }
  /** `turnMustSettle`: the turn in progress has calls that can't be taken back. `offset`: of the event, where it begins no turn and joins none. */
  | {
      type: 'event.post';
      post: PostedEvent;
      atMs: number;
      coalesceMs: number;
      newTurnId: string;
      turnMustSettle: boolean;
      offset: number;
      check: MessageCheck | null;
    }
  /** The check of a message has ended. `marked`: the message as it is to be stored; null: it is deleted. */
  | {
      type: 'message.checked';
      callId: string;
      verdict: 'passed' | 'flagged' | 'unavailable';
      marked: ConversationEvent | null;
      /** For a turn that waits: the routine that the message is most like. */
      likeliest: string | undefined;
    }
  /** `changed`: the event as it is to be stored. */
  | { type: 'event.patch'; changed: ConversationEvent | null; refusal: Refusal | null }
  /** `range` null: there is nothing to delete. */
  | { type: 'events.delete'; range: CutRange | null; force: boolean; refusal: Refusal | null }
  /** `ephemeral`: the run creates the session. */
  | { type: 'run.start'; runId: string; ephemeral: boolean }
  | { type: 'turn.result'; event: TurnEventBody }
  /** `nextTurnId`: of the turn that waits; null: none does. */
  | { type: 'turn.settled'; turnId: string; nextTurnId: string | null }
  /** By a tool of the turn that has ended, after its `turn.settled`. */
  | { type: 'mode.asked'; mode: 'auto' | 'manual' }
  | { type: 'run.result'; event: RunEventBody }
  | { type: 'run.settled'; runId: string; nextTurnId: string | null }
  /** The deadline of an unsettled run: in progress, queued, or stored as a row only. */
  | { type: 'run.expired'; runId: string; event: RunEventBody }
  /** `isSettled`: before this command. */
  | { type: 'run.cancel'; runId: string; isSettled: boolean; event: RunEventBody }
  /** A round was opened: the first one, or another. Of an ephemeral session alone, as the next. */
  | { type: 'delivery.opened'; deliveryId: string }
  | { type: 'delivery.settled'; deliveryId: string }
  /** A delivery, the last event or a run without callback is settled: an ephemeral session ends unless a delivery is open, whose end sends it again. */
  | { type: 'deliveries.settled' };

/** Executed by the runtime, in this order, in one commit. */
export interface SessionActions {
  open: { command: CommandOf<'session.create'> };
  /** Changes the public record, without an event. */
  change: { command: CommandOf<'session.patch'> };
  /** The same, by a tool. */
  changeMode: { mode: 'auto' | 'manual' };
  /** Replaces a stored event. */
  changeEvent: { event: ConversationEvent };
  cut: CutRange;
  /** Creates the record of a run's ephemeral session. */
  openForRun: { runId: string };
  /** `id`: absent for a new one. */
  fact: { content: EventContent; source: EventSource; metadata: Record<string, unknown>; trace: 'turn' | 'own' | 'wanted'; id?: string };
  /** Opens the check of the newest event. Null: it needs none. */
  openCheck: (MessageCheck & { deadlineAtMs: number }) | null;
  closeCheck: { callId: string; marked: ConversationEvent | null };
  /** Events up to the next turn carry its trace. */
  beginTurn: TurnStart;
  /** Starts the turn's machine, after its message is in the log. */
  runTurn: Pick<TurnStart, 'likeliest' | 'isUnmoderated'>;
  notifyTurn: { event: TurnEventBody };
  beginRun: { runId: string };
  notifyRun: { event: RunEventBody };
  /** Arms the deadline of a waiting run. */
  awaitRun: { runId: string };
  /** Settles runs that never began. */
  failRuns: { runIds: readonly string[]; error: RunError };
  /** Deletes an ephemeral session, at once or after its last event. */
  endSession: Record<string, never>;
  /** Deletes the session's rows but a tombstone, and the state of its turn or run. */
  erase: Record<string, never>;
  reply: { with: 'session' | 'posted-event' | 'nothing' };
  refuse: { code: ErrorCode; message: string };
}
