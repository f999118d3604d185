import type { ListedTool } from '#bus/messages/tool.ts';
import type { BundleBody } from '#shared/config/bundle-body.ts';
import type { Routine } from '#shared/contracts/documents/routine.ts';
import type { Violation } from '#shared/schema/violation.ts';
import type { StepMessage } from '../run/types.ts';

/** All inputs of a transition besides state and command. They make it deterministic: the same command on the same state gives the same rows. */
export interface TransitionInputs {
  atMs: number;
  coalesceMs: number;
  turnTimeoutMs: number;
  /** Null when the bundle has no greeting. */
  greetingOf(bundleHash: string): string | null;
  /** A run that the batch refers to, directly or by its session; null without a row. */
  runOf(runId: string): RunFacts | null;
  /** Whether a run that the batch starts or whose deadline it reports was settled before the batch. */
  isSettled(runId: string): boolean;
  /** Whether an effect whose failure the batch reports was superseded before the batch, with another opened in its place. */
  isSuperseded(effectId: string): boolean;
  /** Null when the list is not stored. */
  toolsOf(listHash: string): readonly ListedTool[] | null;
  /** The newest staged messages of a run by number, at least those of its last batch. */
  stagedOf(runId: string): ReadonlyMap<number, StepMessage>;
  /** A new ULID. */
  newId(): string;
  /** 32 hex digits. */
  newTraceId(): string;
  /** Between 0 and 1, for jitter. */
  chance(): number;
}

/** A run's immutable facts, fixed at its acceptance. */
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
  /** The bundle that the run was accepted under; null when unreadable. */
  bundle: BundleBody | null;
  /** Null when the configuration has no such routine. */
  routine: AutonomousRoutine | null;
  /** Null when the input is valid. */
  inputViolation: Violation | null;
  /** Null when the output is valid. */
  checkOutput(value: unknown): Violation | null;
}

export type AutonomousRoutine = Extract<Routine, { kind: 'autonomous' }>;
