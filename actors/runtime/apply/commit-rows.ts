import type { CommandReply } from '#bus/messages/session.ts';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { RunCallOutcome } from '#shared/contracts/agent/run.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';
import type { Attributes, ContentCapture, SpanEvent } from '#shared/telemetry/tracing.ts';
import type { EffectRow } from '../../effects/effect-row.ts';
import type { SessionState } from './session-state.ts';

/** To do after the commit; can all be derived again from the rows. */
export interface AfterCommit {
  replies: { partition: number; gateway: string; commandId: string; reply: CommandReply; repeat: boolean }[];
  /** By session: first and last new offset, and the events as JSON. */
  notices: Map<string, { partition: number; first: number; last: number; events: string[]; isDeleted: boolean; isChanged?: boolean }>;
  /** Superseded calls, to be aborted at their workers. */
  aborts: { partition: number; callId: string }[];
  milestones: Milestone[];
  /** For traces. */
  ended: EndedWork[];
}

/** A line for the log: ids, no content. */
export interface Milestone {
  partition: number;
  what: string;
  fields: Record<string, string>;
  end: Ending | null;
}

/** An ended turn or run, or an ended part of one, for traces. */
export interface EndedWork {
  partition: number;
  /** Name of its kind. */
  kind: string;
  id: string;
  sessionId: string;
  /** Null for a turn. */
  routineId: string | null;
  bundleHash: string;
  /** `traceparent` of the request behind the turn or run. */
  parent: string | null;
  /** Of a part: id of the turn or run. Absent: it is one. */
  partOf?: string;
  startedAtMs: number;
  endedAtMs: number;
  outcome: string;
  /** What there is to say of it; called only if it is recorded. Absent: nothing. */
  details?(content: ContentCapture): { attributes: Attributes; events: readonly SpanEvent[] };
}

export interface Ending {
  /** One of a closed set. */
  outcome: string;
  durationMs: number;
  /** Called after the commit. */
  count(metrics: Metrics): void;
}

export interface EventRow {
  partition: number;
  sessionId: string;
  event: ConversationEvent;
  /** As JSON. */
  text: string;
}

/** A stored event with new metadata. */
export interface ChangedEvent {
  partition: number;
  sessionId: string;
  offset: number;
  /** As JSON. */
  text: string;
}

/** A deletion of stored events. */
export interface DeletedEvents {
  partition: number;
  sessionId: string;
  fromOffset: number;
  /** Exclusive. */
  toOffset: number;
  atMs: number;
}

/** A message of a transcript. */
export interface StepRow {
  partition: number;
  sessionId: string;
  runId: string;
  seq: number;
  message: object;
}

/** A result or a decision of a turn. */
export interface TurnStepRow {
  partition: number;
  sessionId: string;
  turnId: string;
  /** From 0. */
  seq: number;
  /** Of the session's last event. */
  offset: number;
  body: object;
}

export interface AgentStateRow {
  partition: number;
  sessionId: string;
  /** From 1; the highest of a session counts. Below 0: it is added to that one. */
  seq: number;
  /** Of the event with whose deletion it goes. */
  offset: number;
  state: object;
}

export type OpenedEffect = EffectRow & { state: 'open' | 'done' | 'superseded' };

export interface ClosedEffect {
  partition: number;
  id: string;
  state: 'done' | 'superseded';
}

/** `dueAtMs` null: the timer is deleted. */
export type TimerRow = TimerStorage &
  ({ partition: number; key: string; dueAtMs: number; command: string } | { partition: number; key: string; dueAtMs: null });

export interface TimerStorage {
  /** It has no row: the next owner derives it from an open effect. */
  isDerived?: boolean | undefined;
}

/** Progress of a run, as in its row. Null: not set yet. */
export interface RunProgress {
  partition: number;
  id: string;
  state: 'running' | 'succeeded' | 'failed';
  output: Record<string, unknown> | null;
  error: { code: string; message: string; details: Record<string, unknown> } | null;
  startedAtMs: number | null;
  completedAtMs: number | null;
}

export interface RunCallRow {
  partition: number;
  runId: string;
  effectId: string;
  outcome: RunCallOutcome;
  endedAtMs: number;
}

/** A callback to post; the body's bytes are fixed here. */
export interface DeliveryRow {
  partition: number;
  id: string;
  sessionId: string;
  runId: string;
  url: string;
  hostAllowlist: readonly string[] | null;
  bundleHash: string;
  idempotencyKey: string;
  traceId: string;
  traceparent: string | null;
  body: string;
  createdAtMs: number;
}

export interface DeliveryEnd {
  partition: number;
  id: string;
  state: 'delivered' | 'dead';
}

export interface DeadLetter {
  partition: number;
  id: string;
  source: 'command' | 'delivery' | 'event';
  reason: string;
  body: string;
}

/** A customer that a run has for itself; it is deleted with the session. */
export interface CustomerRow {
  partition: number;
  sessionId: string;
  id: string;
  createdAtMs: number;
}

/** All labels of a session, after a change. */
export interface LabelledSession {
  partition: number;
  sessionId: string;
  customerId: string;
  /** Of the session, RFC 3339. */
  createdAt: string;
  labels: readonly string[];
}

/** What one command writes. */
export interface CommandRows {
  readonly partition: number;
  readonly sessionId: string;
  /** Null: the session is not written. */
  readonly session: SessionState | null;
  readonly isErased: boolean;
  /** Null: its labels have not changed. */
  readonly labelled: LabelledSession | null;
  readonly customers: readonly CustomerRow[];
  readonly events: readonly EventRow[];
  /** Of earlier commits, as `deletedEvents`. */
  readonly changedEvents: readonly ChangedEvent[];
  readonly deletedEvents: readonly DeletedEvents[];
  readonly steps: readonly StepRow[];
  readonly turnSteps: readonly TurnStepRow[];
  readonly agentStates: readonly AgentStateRow[];
  readonly effects: readonly OpenedEffect[];
  /** Effects of earlier commands. */
  readonly closedEffects: readonly ClosedEffect[];
  readonly timers: readonly TimerRow[];
  readonly runs: readonly RunProgress[];
  readonly runCalls: readonly RunCallRow[];
  readonly deliveries: readonly DeliveryRow[];
  readonly deliveryEnds: readonly DeliveryEnd[];
  readonly deadLetters: readonly DeadLetter[];
  readonly aborts: readonly { partition: number; callId: string }[];
  readonly milestones: readonly Milestone[];
  readonly ended: readonly EndedWork[];
}
