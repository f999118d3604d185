import type { PartitionClaim, StoredPartition } from '../../store/port/partition-store.ts';

interface Progress {
  epoch: number;
  commitNo: number;
}

/**
 * The last stored commit of every partition that this process has ever owned. Both numbers only grow: a row behind them means that the database was
 * restored to an earlier time, or failed over to a lagging replica.
 */
export class StoredProgress {
  readonly #claims = new Map<number, PartitionClaim>();

  /** Stays live: the commit loop counts on in the claim. */
  follow(claim: PartitionClaim): void {
    this.#claims.set(claim.partition, claim);
  }

  /** A copy, to be taken before the rows to compare with are read. */
  snapshot(): ReadonlyMap<number, Progress> {
    return new Map([...this.#claims].map(([partition, { epoch, commitNo }]) => [partition, { epoch, commitNo }]));
  }

  /** @returns partitions with rows behind, and their missing commits in total */
  behind(stored: ReadonlyMap<number, Progress>, rows: ReadonlyMap<number, StoredPartition>): { partitions: number[]; commits: number } {
    const partitions: number[] = [];
    let commits = 0;
    for (const [partition, { epoch, commitNo }] of stored) {
      const row = rows.get(partition);
      if (row !== undefined && row.epoch >= epoch && row.commitNo >= commitNo) continue;
      partitions.push(partition);
      commits += Math.max(0, commitNo - (row?.commitNo ?? 0));
    }
    return { partitions, commits };
  }

  /** After a restore, when the old progress no longer applies. */
  forget(): void {
    this.#claims.clear();
  }
}
