import type { RunProgress } from '../../runtime/apply/commit-rows.ts';
import type { PartitionClaim, StoredPartition } from '../port/partition-store.ts';
import type { RuntimeStore } from '../runtime-store.ts';

export const PARTITIONS = 64;

/** A run as a gateway accepts it. */
interface AcceptedRun {
  id: string;
  partition: number;
  sessionId: string;
  createdAtMs: number;
  /** Session and customer are created for it; absent: false. */
  ephemeral?: boolean;
}

/** What other processes write and read. */
export interface OtherProcesses {
  acceptRun(run: AcceptedRun): Promise<void>;
  /** False: it is claimed, or withdrawn. */
  claim(effectId: string): Promise<boolean>;
  storeTools(hash: string, tools: unknown): Promise<void>;
  storeCustomer(customer: { id: string; name: string; tags: string[] }): Promise<void>;
  /** Of a variable. */
  storeValue(key: string, name: string, data: unknown): Promise<void>;
  /** As a restore of an earlier state of the store leaves it. */
  restore(partition: number, to: StoredPartition): Promise<void>;
  run(id: string): Promise<Omit<RunProgress, 'partition' | 'id' | 'state'> & { state: string }>;
  /** Effects with a recorded outcome. */
  runCalls(runId: string): Promise<string[]>;
  hasCustomer(id: string): Promise<boolean>;
  /** Of a session, in order. */
  labels(sessionId: string): Promise<string[]>;
  /** Null when it is not stored. */
  deliveryState(id: string): Promise<string | null>;
  /** Sources of the dead letters under an id. */
  deadLetters(id: string): Promise<string[]>;
}

export interface StoreUnderTest {
  /** With `PARTITIONS` partitions. */
  store: RuntimeStore;
  others: OtherProcesses;
  close(): Promise<void>;
}

export type UnderTest = () => StoreUnderTest;

/** Longer than a suite takes. */
export const LONG_MS = 3_600_000;

let numbers = 0;

/** An id that no other case uses. */
export function unique(what: string): string {
  numbers += 1;
  return `${what}_${numbers}`;
}

let partitions = 0;

/** A partition that no case running meanwhile uses. */
export function nextPartition(): number {
  partitions = (partitions + 1) % PARTITIONS;
  return partitions;
}

/** Acquires a partition for a host, whatever its owner. */
export async function acquire({ store }: StoreUnderTest, partition: number, hostId = unique('host')): Promise<PartitionClaim> {
  const options = { hostId, machineVersion: 1, logCreated: 'log', partitions: [partition], expiresAfterMs: -LONG_MS };
  const [claim] = await store.partitions.acquire(options);
  if (claim === undefined) throw new Error(`partition ${partition} was not acquired`);
  return claim;
}
