import type { CommandOf } from '#bus/messages/session.ts';
import type { EventContent } from '#shared/contracts/agent/conversation-event.ts';
import type { Decision } from '../../engine/decide.ts';
import type { SaidText } from '../../engine/likeness/said-text.ts';
import type { SearchPlan, SearchStage } from '../../engine/retrieval/search-plan.ts';
import type { ArgumentsReference } from '../../engine/tools/tool-rounds.ts';
import type { CallRequest } from '../../engine/turn-calls.ts';
import type { RowOf, TurnRow } from '../../engine/turn-row.ts';
import type { CallFailed, LoopActions, Replied, ToolOutcome } from '../../tool-loop/types.ts';
import type { ComposedReply } from './steps/compose-reply.ts';

export interface TurnInput {
  turnId: string;
  /** Start, epoch ms. */
  atMs: number;
  /** Time from the start until the turn fails. */
  timeoutMs: number;
  /** Absent: the turn is one model call. */
  opening?: Opening | undefined;
  /** Of an agent with preambles: whether this turn gets one. */
  preamble?: { isDue: boolean } | undefined;
  /** Absent: it begins at once. */
  held?: Held | undefined;
}

/** Of a turn that waits until moderation has checked all messages of the session. */
export interface Held {
  /** The routine that its messages are most like; absent: they are like none so far. */
  likely?: Likely | undefined;
}

export interface Likely {
  routineId: string;
  /** Of the message. */
  offset: number;
}

/** How a turn with an engine begins, and begins again when a message joins it. */
export interface Opening {
  row: TurnRow;
  decision: Decision;
  /** For documents that the reply is to use; null: there is none. */
  search: Pick<SearchPlan, 'first' | 'timeoutMs'> | null;
}

export interface TurnContext {
  turnId: string;
  deadlineAtMs: number;
  /** Number of the awaited model call, from 1; 0 before the first. */
  callNo: number;
  /** Absent: the turn is one model call. */
  engine?: EngineContext;
  /** Absent: the agent has no preambles. */
  preamble?: PreambleContext;
  /** Absent: no message is being checked that it waits for. */
  held?: Held | undefined;
  /** Its deadline is a stored timer though it has no engine. Absent: it is that of the open model call. */
  hasDeadlineRow?: boolean;
  /** Why the turn has failed, safe to show. A turn that goes on has none. */
  failure?: string;
}

/** Never documents, prompts or results: those are references and rows. */
export interface EngineContext {
  /** Rows staged so far. */
  stepCount: number;
  /** Awaited calls. */
  pending: PendingCall[];
  /** Structured model calls so far. */
  calls: number;
  /** Of their prompts and replies. */
  tokens: number;
  /** The newest status in the log; null: `acknowledged`. No stage follows `typing`, and none is announced twice in a row. */
  status: HeldStatus | null;
  /** The reply that is composed will be checked before it is sent. */
  isToCheck?: boolean;
  /** Of the questions that are asked now, for traces: number of the first row of theirs, and when they began. Absent: none are asked. */
  planning?: { from: number; atMs: number };
  /** The awaited search; null and absent: none. */
  search?: PendingSearch | null;
  /** Within a transition only. */
  next?: Decision;
}

interface PendingSearch {
  /** Of the stage that is awaited. */
  callId: string;
  /** Of the whole search. */
  openedAtMs: number;
  /** The rest is absent from searches that are one effect, `search`. */
  stage?: SearchStage;
  stageOpenedAtMs?: number;
  /** Of the whole search. */
  deadlineAtMs?: number;
}

/** Commands that may end a turn's search, or a stage of it, or its call for vectors of what was said. */
export type SearchCommand = CommandOf<'call.completed' | 'call.failed' | 'tool.completed' | 'effect.overdue'>;

/** A row for what a stage of a turn's search has brought. */
export interface SearchSettled {
  type: 'search.settled';
  callId: string;
  row: TurnRow;
  /** Of a model. */
  tokens: number;
  /** What follows; null: the search has ended. */
  next: SearchStage | null;
}

/** Of a turn whose agent has preambles. */
export interface PreambleContext {
  /** Later there is none. */
  untilAtMs: number;
  /** The call that is made for it; null: none is, or is any more. */
  callId: string | null;
  /** Calls so far. */
  calls: number;
  /** The call is made once all messages are checked; absent: at once. */
  isPostponed?: boolean;
  /** When it was appended; absent: it was not. */
  shownAtMs?: number;
  /** The status that follows, in the log once the preamble is, or once it can't come any more; null: none waits. */
  held: HeldStatus | null;
}

/** The stages of `processing`, and `typing`. */
export type HeldStatus = 'matching' | 'tools' | 'retrieving' | 'typing';

export interface PendingCall {
  callId: string;
  /** Of the request. */
  key: string;
  /** Malformed answers so far. */
  malformed: number;
  openedAtMs: number;
  /** Of tool calls: such a call has had no effect if it is made again, so nothing waits for it. */
  isRepeatable?: boolean;
  /** For vectors of what was said: a timer ends the wait for it. Absent: it is another call. */
  isForLikeness?: true;
}

/** A row for a call's answer, and what follows from it. */
export interface StepSettled {
  type: 'step.settled';
  callId: string;
  row: TurnRow;
  tokens: number;
  /** After the last awaited call; null: others are awaited. */
  next: Decision | null;
  /** Ids of awaited calls that nothing needs after this answer; absent: none. */
  needless?: readonly string[];
  /** The event of a batch of tool calls, with the last of them; null: nothing of it stays in the log. */
  fact?: EventContent | null;
  /** What the batch says to the customer; null and absent: nothing. */
  announcement?: string | null;
}

/** What stays of a batch of tool calls that ends before all have settled: rows for calls whose outcome is not known, and the event of the batch. */
export interface Unsettled {
  rows: readonly TurnRow[];
  fact: EventContent | null;
}

/** An answer that can't be read. */
export interface StepMalformed {
  type: 'step.malformed';
  callId: string;
  /** To be made once more. */
  request: CallRequest;
  row: RowOf<'malformed'>;
  tokens: number;
  /** Of a reply's check: what follows if it has been made once more already. */
  unchecked?: Unchecked;
}

/** A reply whose check gives no finding: why, and what is sent nevertheless. */
export interface Unchecked {
  row: TurnRow;
  draft: RowOf<'reply'> | null;
}

/** The outcome of a reply's check. */
export interface CheckSettled extends Unchecked {
  type: 'check.settled';
  callId: string;
  tokens: number;
  /** To be sent; null: it does not follow each policy, and another one is composed. */
  draft: RowOf<'reply'> | null;
}

/** The answer to the call for a preamble. */
interface PreambleSettled {
  type: 'preamble.settled';
  callId: string;
  /** Null: there is none that may be shown. */
  text: string | null;
}

/** What a turn's effects need beside their results. */
export interface TurnScope {
  /** The answer to an awaited structured call; null for any other. */
  stepOf(command: CommandOf<'call.completed'>): StepSettled | StepMalformed | CheckSettled | null;
  /** A composing call's reply. */
  replyOf(command: CommandOf<'call.completed'>, reply: ComposedReply): TurnEventBody;
  /** A reply's check that has failed; null for any other call. */
  failedCheckOf(callId: string): CheckSettled | null;
  /** The answer to the call for a preamble, or its failure; null for any other. */
  preambleOf(command: CommandOf<'call.completed' | 'call.failed'>): PreambleSettled | null;
  /** The outcome of an awaited tool call; null for any other. */
  toolOf(callId: string, outcome: ToolOutcome): StepSettled | null;
  /** An awaited tool call that brought no result in time, though it may have been made; null for any other. */
  overdueOf(callId: string): StepSettled | null;
  /** The end of the awaited search; null for any other. */
  searchOf(command: SearchCommand): SearchSettled | null;
  /** What vectors of what was said have shown, or that there are none; null for any other call. */
  likenessOf(command: SearchCommand): StepSettled | null;
}

export type TurnEventBody =
  | { type: 'message.joined'; opening?: Opening | undefined; held?: Held | undefined; unsettled?: Unsettled | undefined }
  /** Moderation has checked a message; with `held`: others are still being checked. */
  | { type: 'messages.checked'; opening?: Opening | undefined; held?: Held | undefined }
  /** A message could not be checked. */
  | { type: 'moderation.failed' }
  | StepSettled
  | StepMalformed
  | CheckSettled
  | PreambleSettled
  | SearchSettled
  /** `check`: the reply is not sent before it. */
  | (Replied<ComposedReply> & { check?: { draft: RowOf<'reply'>; request: CallRequest } })
  | CallFailed
  /** `mayWait`: the session goes on, so calls that can't be taken back settle first. */
  | { type: 'turn.cancel'; mayWait?: boolean; unsettled?: Unsettled | undefined }
  | { type: 'turn.poisoned'; unsettled?: Unsettled | undefined }
  | { type: 'turn.deadline'; turnId: string; unsettled?: Unsettled | undefined; unchecked?: Unchecked | undefined };

/** `atMs`: time of application, epoch ms. From the turn's deadline on, failures count as the timeout. */
export type TurnEvent = TurnEventBody & { atMs: number };

/** Executed by the runtime in one commit. */
export interface TurnActions extends Pick<LoopActions, 'supersede'> {
  /** Appends to the session's log. `id`: null for a new one. */
  fact: { content: EventContent; id: string | null; metadata: Record<string, unknown> };
  /** Stores a row of the turn. */
  stage: { seq: number; row: TurnRow };
  /** Stores that the newest event is a preamble, for later turns. */
  rememberPreamble: { text: string };
  /** Stores what the agent remembers of the turn. */
  remember: Record<string, never>;
  /** Opens a model call on the log so far. `staged`: so many rows of the turn count. */
  effect:
    | { kind: 'router-call'; id: string; deadlineAtMs: number; staged?: number; isWithheld?: boolean }
    | { kind: 'turn-step'; id: string; deadlineAtMs: number; staged: number; request: CallRequest }
    | { kind: SearchStage; id: string; deadlineAtMs: number; staged: number }
    | { kind: 'embed-messages'; id: string; deadlineAtMs: number; texts: readonly SaidText[] }
    | { kind: 'preamble'; id: string; deadlineAtMs: number }
    | { kind: 'tool-call'; id: string; deadlineAtMs: number; staged: number; toolId: string; listHash: string; from: ArgumentsReference };
  /** `command`: of a tool call; absent: that of the turn's deadline. */
  timer: { key: string; atMs: number; isDerived?: boolean; command?: { type: 'effect.overdue'; callId: string; kind: string } };
  disarm: { key: string; isDerived?: boolean };
}
