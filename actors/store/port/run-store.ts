import type { StepMessage } from '../../tool-loop/types.ts';

/** What a run was accepted with. */
export interface StoredRun {
  id: string;
  sessionId: string;
  customerId: string;
  ephemeral: boolean;
  routineId: string;
  bundleHash: string;
  /** JSON, as text: parsing may take long. */
  input: string;
  metadata: string | null;
  callbackUrl: string | null;
  traceId: string;
  traceparent: string | null;
  timeoutMs: number;
  expiresAtMs: number;
  createdAtMs: number;
}

interface UnstartedRun {
  id: string;
  partition: number;
  sessionId: string;
  traceparent: string | null;
  createdAtMs: number;
}

export interface RunStore {
  /** Omits runs that do not exist. */
  load(runIds: readonly string[]): Promise<StoredRun[]>;
  settled(runIds: readonly string[]): Promise<Set<string>>;
  /** Accepted runs without an applied start command, oldest first. */
  unstarted(partitions: readonly number[], options: { minAgeMs: number; limit: number }): Promise<UnstartedRun[]>;
  /** The transcript below a number, in order. */
  transcript(runId: string, below: number): Promise<StepMessage[]>;
  /** The model's messages, newest first. */
  assistantMessages(runId: string): Promise<StepMessage[]>;
  /** By run and number. @param from by run: the first number */
  staged(from: ReadonlyMap<string, number>): Promise<Map<string, Map<number, StepMessage>>>;
  /** Tools as their servers listed them, unchecked. Omits lists that are not stored. */
  toolLists(hashes: readonly string[]): Promise<Map<string, unknown>>;
}
