import type { PartitionClaim, PartitionRow } from './ownership.ts';

interface Progress {
  epoch: number;
  commitNo: number;
}

/**
 * The last stored commit of every partition that this process has ever owned. Epochs and commit numbers only grow, so a row behind them means that
 * the database was restored to an earlier time, or failed over to a lagging replica.
 */
export class StoredProgress {
  readonly #claims = new Map<number, PartitionClaim>();

  /** The claim stays live: the commit loop goes on counting in it. */
  follow(claim: PartitionClaim): void {
    this.#claims.set(claim.partition, claim);
  }

  /** A copy, to be taken before the rows that it is compared with are read. */
  snapshot(): ReadonlyMap<number, Progress> {
    return new Map([...this.#claims].map(([partition, { epoch, commitNo }]) => [partition, { epoch, commitNo }]));
  }

  /** @returns the partitions whose rows are behind, and how many commits they lack together */
  behind(stored: ReadonlyMap<number, Progress>, rows: ReadonlyMap<number, PartitionRow>): { partitions: number[]; commits: number } {
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

  /** After a restore: the old progress no longer applies. */
  forget(): void {
    this.#claims.clear();
  }
}
