import { isCommit } from '#actors/store/sql/commit-statement.ts';
import type { Database, NamedStatement } from '#shared/storage/database.ts';
import { sqlStateOf } from '#shared/storage/transient-error.ts';

interface Place {
  epoch: number;
  commitNo: number;
}

/**
 * Checks every commit that the database accepts: only the last owner of a partition may commit to it, and each commit once. A correct log
 * alone does not prove that. The order of results is taken for that of the statements, which holds where the database runs one at a time.
 */
export class FenceWatch {
  readonly #places = new Map<number, Place>();
  /** Partition, epoch and commit number of accepted commits. */
  readonly #accepted = new Set<string>();
  readonly #acquireWaiters = new Map<number, () => void>();
  readonly breaches: string[] = [];
  /** Commits, once per partition advanced, and acquired partitions. */
  commits = 0;
  acquisitions = 0;

  /** Resolves when the partition was acquired, before its new owner does anything. */
  nextAcquire(partition: number): Promise<void> {
    return new Promise((resolve) => this.#acquireWaiters.set(partition, resolve));
  }

  over(database: Database): Database {
    return {
      transaction: (work) => database.transaction(work),
      close: () => database.close(),
      query: async (statement, parameters) => {
        const result = await database.query<never>(statement, parameters).catch((error: unknown) => {
          if (isCommit(statement)) this.#lookAtFailure(parameters ?? [], error);
          throw error;
        });
        this.#look(statement, parameters ?? [], result.rows);
        return result;
      },
    };
  }

  #look(statement: string | NamedStatement, parameters: readonly unknown[], rows: readonly unknown[]): void {
    if (typeof statement === 'string') return;
    if (statement.name === 'take-partitions') {
      for (const row of rows as readonly { p: number; epoch: number; commit_no: number }[]) {
        this.acquisitions += 1;
        this.#places.set(row.p, { epoch: row.epoch, commitNo: row.commit_no });
        this.#acquireWaiters.get(row.p)?.();
        this.#acquireWaiters.delete(row.p);
      }
    }
    if (!isCommit(statement)) return;
    const places = placesOf(parameters);
    const owned = (rows as readonly { owned: number[] }[])[0]?.owned ?? [];
    for (const partition of owned) this.#accept(partition, places.get(partition) ?? { epoch: -1, commitNo: -1 });
  }

  /** A commit that was accepted before must fail on its commit number; failing on a key of its rows is too late. */
  #lookAtFailure(parameters: readonly unknown[], error: unknown): void {
    const isRepeated = [...placesOf(parameters)].some(([partition, place]) => this.#accepted.has(nameOf(partition, place)));
    if (!isRepeated || sqlStateOf(error) !== '23505') return;
    this.breaches.push('a commit that had been accepted came again, and got as far as its rows');
  }

  #accept(partition: number, { epoch, commitNo }: Place): void {
    this.commits += 1;
    this.#accepted.add(nameOf(partition, { epoch, commitNo }));
    const index = this.#places.get(partition);
    if (index === undefined || index.epoch !== epoch) {
      this.breaches.push(`partition ${partition}: a commit under epoch ${epoch} was accepted after epoch ${index?.epoch} had been taken`);
    } else if (index.commitNo !== commitNo) {
      this.breaches.push(`partition ${partition}: commit ${commitNo} was accepted where ${index.commitNo} was the next`);
    }
    this.#places.set(partition, { epoch, commitNo: commitNo + 1 });
  }
}

function placesOf(parameters: readonly unknown[]): Map<number, Place> {
  const [partitions, epochs, commitNos] = parameters as [number[], number[], number[]];
  return new Map(partitions.map((partition, index) => [partition, { epoch: epochs[index] ?? -1, commitNo: commitNos[index] ?? -1 }]));
}

function nameOf(partition: number, { epoch, commitNo }: Place): string {
  return `${partition} ${epoch} ${commitNo}`;
}
