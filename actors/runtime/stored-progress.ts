import type { PartitionClaim, PartitionRow } from './ownership.ts';

/** How far a partition was stored. */
interface Progress {
  epoch: number;
  commitNo: number;
}

/**
 * Remembers how far the partitions were stored that this process has ever held. Epochs and commit numbers only grow, so a row that is
 * behind what was stored means that the database was restored to an earlier time, or failed over to a replica that had lagged.
 */
export class StoredProgress {
  readonly #claims = new Map<number, PartitionClaim>();

  /** The commit loop counts on in the claim, also after this process has lost the partition. */
  follow(claim: PartitionClaim): void {
    this.#claims.set(claim.partition, claim);
  }

  /** As it is now: to be read before the rows that it is compared with. */
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

  /** What was stored is no longer so: from here on nothing is compared with it. */
  forget(): void {
    this.#claims.clear();
  }
}
