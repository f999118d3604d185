interface StoredTimer {
  partition: number;
  key: string;
  dueAtMs: number;
  /** JSON. */
  command: string;
}

export interface TimerStore {
  of(partitions: readonly number[]): Promise<StoredTimer[]>;
}
