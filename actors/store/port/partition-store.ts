/** A host's ownership of a partition. The epoch is the fencing token: commits with an older one store nothing. */
export interface PartitionClaim {
  readonly partition: number;
  readonly epoch: number;
  readonly owner: string;
  /** Incremented by every commit on the partition. */
  commitNo: number;
  /** Sequence of the last applied command. */
  cursor: number;
  /** Of the command at the cursor (bus/position-fingerprint.ts); null when unknown. */
  cursorFingerprint: string | null;
}

interface AcquireOptions {
  hostId: string;
  machineVersion: number;
  /** Identifies the current command log. */
  logCreated: string;
  partitions: readonly number[];
  /** An owner without a heartbeat for this long is dead. */
  expiresAfterMs: number;
}

/** The stored fence of a partition: a writer needs this epoch. */
export interface StoredPartition {
  epoch: number;
  commitNo: number;
  /** Null: released, or never acquired. */
  owner: string | null;
}

export interface PartitionStore {
  /** Creates the partitions at a store's first start, unless it has another number of them. @returns the number that it has */
  initialise(count: number): Promise<number>;
  /**
   * Acquires those partitions that are free, this host's already, or a dead host's, each with a new epoch, which fences a former owner at its next
   * commit. None that a newer machine version has written. Waits for a commit in flight and returns its cursor. After a replacement of the command
   * log the cursor is 0: processed commands make the repeats harmless.
   */
  acquire(options: AcquireOptions): Promise<PartitionClaim[]>;
  /** Releases partitions still owned under these claims. The next owner need not wait for an expiry. */
  release(claims: readonly PartitionClaim[]): Promise<void>;
  /**
   * Releases every partition that this host owns, except for those to retain, whatever its epoch.
   * @returns also all partitions as they were before
   */
  releaseOutside(hostId: string, retain: ReadonlySet<number>): Promise<{ released: number[]; before: ReadonlyMap<number, StoredPartition> }>;
  read(partitions: readonly number[]): Promise<Map<number, StoredPartition>>;
  /** Of all partitions; null before `initialise`. */
  lowestCursor(): Promise<{ sequence: number; fingerprint: string | null } | null>;
}
