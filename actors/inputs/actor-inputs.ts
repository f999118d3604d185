import type { ListedTool } from '#bus/messages/tool.ts';
import type { BundleBody } from '#shared/config/bundle-body.ts';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { Routine } from '#shared/contracts/documents/routine.ts';
import type { Violation } from '#shared/schema/violation.ts';
import type { AgentState } from '../engine/agent-state.ts';
import type { EngineDocuments } from '../engine/engine-documents.ts';
import type { TurnRow } from '../engine/turn-row.ts';
import type { TransitionInputs } from '../runtime/apply/transition-inputs.ts';
import type { LogCut } from '../store/port/session-store.ts';
import type { StepMessage } from '../tool-loop/types.ts';

/** Where a deployment's events are posted. */
export interface EventWebhookAddress {
  url: string;
  /** Null: all. */
  kinds: readonly string[] | null;
}

/** All inputs of a transition besides state and command. */
export interface ActorInputs extends TransitionInputs {
  coalesceMs: number;
  turnTimeoutMs: number;
  /** Absent: no address for all sessions, and the default number of attempts. */
  eventWebhooks?: { deployment: EventWebhookAddress | null; maxAttempts: number };
  /** Of a session that the batch creates; null when its bundle has no greeting. */
  greetingOf(sessionId: string): string | null;
  /** Only for a command that changes stored events, which has a batch of its own: what it names, null for nothing. */
  stored?: { event: ConversationEvent | null; cut: LogCut | null };
  /** Absent: no session of the batch has an agent with policies. */
  engine?: TurnFacts;
  /** A run that the batch refers to, also by its session; null without a row. */
  runOf(runId: string): RunFacts | null;
  /** Of runs that the batch starts or expires: settled before it. */
  isSettled(runId: string): boolean;
  /** Of effects that the batch reports as failed: superseded before it, with another opened. */
  isSuperseded(effectId: string): boolean;
  /** Of the pending tool calls of a run that the batch cancels: begun, and not to be repeated. The others are withdrawn: none can begin any more. */
  isClaimed(effectId: string): boolean;
  /** Null when the list is not stored. */
  toolsOf(listHash: string): readonly ListedTool[] | null;
  /** Staged messages of a run by number, at least those of its last batch. */
  stagedOf(runId: string): ReadonlyMap<number, StepMessage>;
}

/** What decisions of turns need beside snapshots. */
export interface TurnFacts {
  /**
   * Null: turns on that bundle are one model call.
   * @param evaluations the set that a turn has named; absent: those of a turn that begins now
   */
  documentsOf(bundleHash: string, evaluations?: string | null): EngineDocuments | null;
  /** Whether the agent has preambles. */
  hasPreambles(bundleHash: string): boolean;
  /** The newest one; null: there is none. */
  agentStateOf(sessionId: string): { offset: number; state: AgentState } | null;
  /** By server: hash of the newest stored tool list. */
  listsOf(bundleHash: string): Readonly<Record<string, string>>;
  /** Of turns that the batch begins, or is for; null for a list that is not stored. */
  toolsOf(listHash: string): readonly ListedTool[] | null;
  /** Of a turn in progress, in order. */
  rowsOf(turnId: string): readonly TurnRow[];
  /** Of a replay: the row that was recorded for a call, which counts in place of the command's result; null: there is none. Absent: no turn is a replay. */
  recordedOf?(callId: string): TurnRow | null;
}

/** A run's facts, fixed at its acceptance. */
export interface RunFacts {
  id: string;
  sessionId: string;
  customerId: string;
  ephemeral: boolean;
  routineId: string;
  bundleHash: string;
  metadata: Record<string, unknown> | null;
  callbackUrl: string | null;
  traceId: string;
  traceparent: string | null;
  timeoutMs: number;
  expiresAtMs: number;
  createdAtMs: number;
  /** Null when unreadable. */
  bundle: BundleBody | null;
  /** Null when the configuration has no such routine. */
  routine: AutonomousRoutine | null;
  /** Null when valid. */
  inputViolation: Violation | null;
  /** Null when valid. */
  checkOutput(value: unknown): Violation | null;
}

export type AutonomousRoutine = Extract<Routine, { kind: 'autonomous' }>;
