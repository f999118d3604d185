import type { ListedTool } from '#bus/messages/tool.ts';
import type { BundleBody } from '#shared/config/bundle-body.ts';
import type { Routine } from '#shared/contracts/documents/routine.ts';
import type { Violation } from '#shared/schema/violation.ts';
import type { StepMessage } from '../run/types.ts';

/** What a transition may know of the world. Nothing else gets in, so the same command on the same state always gives the same rows. */
export interface TransitionInputs {
  atMs: number;
  coalesceMs: number;
  turnTimeoutMs: number;
  /** The greeting of a bundle, null when it has none. */
  greetingOf(bundleHash: string): string | null;
  /** A run that a command of this batch is about, or whose session one is; null when it has no row. */
  runOf(runId: string): RunFacts | null;
  /** Whether a run that a command of this batch starts, or calls too late, was over before the batch. */
  isSettled(runId: string): boolean;
  /** Whether an effect whose failure a command of this batch reports was given up before the batch, and another made in its place. */
  isSuperseded(effectId: string): boolean;
  /** A stored tool list by its hash; null when it is not there. */
  toolsOf(listHash: string): readonly ListedTool[] | null;
  /** The newest staged messages of a run, at least its last batch's, by number. */
  stagedOf(runId: string): ReadonlyMap<number, StepMessage>;
  /** A fresh ULID. */
  newId(): string;
  /** A fresh 32-hex trace id. */
  newTraceId(): string;
  /** Between 0 and 1, for spreading what would otherwise happen at once. */
  chance(): number;
}

/** What was settled when the run was accepted; none of it changes later. */
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
  /** The configuration that the run was accepted under; null when it can't be read. */
  bundle: BundleBody | null;
  /** Null when the configuration has no such routine. */
  routine: AutonomousRoutine | null;
  /** What is wrong with the input, null when nothing is. */
  inputViolation: Violation | null;
  /** What is wrong with an output, null when nothing is. */
  checkOutput(value: unknown): Violation | null;
}

export type AutonomousRoutine = Extract<Routine, { kind: 'autonomous' }>;
