import type { CommitPlan } from '../../actors/runtime/apply/commit-plan.ts';
import type { PartitionClaim } from '../../actors/store/port/partition-store.ts';
import type { Scheduler } from './scheduler.ts';
import type { Stored } from './watch.ts';

/** A host waits no longer for its broker. */
const HELD_MS = 10_000;

interface Acquisition {
  epoch: number;
  atMs: number;
  cursor: number;
  /** Of the partition, in the log. */
  last: number;
}

/** A commit of a partition that was stored. */
interface Committed {
  p: number;
  epoch: number;
  cursor: number;
}

/** Checks that timers of an acquired partition are applied behind the commands that stood in its log: the results that they would end may be among these. */
export class TakeOverWatch {
  readonly #scheduler: Scheduler;
  readonly #history: readonly Stored[];
  readonly #breach: (what: string) => void;
  readonly #acquired = new Map<number, Acquisition>();
  /** Positions in a log that was rolled back say nothing. */
  #isLogLost = false;
  /** Timers that were applied behind such commands. */
  readonly counts = { timersHeld: 0 };

  constructor(scheduler: Scheduler, history: readonly Stored[], breach: (what: string) => void) {
    this.#scheduler = scheduler;
    this.#history = history;
    this.#breach = breach;
  }

  acquired(claims: readonly PartitionClaim[]): void {
    for (const { partition, epoch, cursor } of claims) {
      const last = this.#history.reduce((found, { entry, isLost }) => (entry.partition === partition && !isLost ? Math.max(found, entry.sequence) : found), 0);
      this.#acquired.set(partition, { epoch, cursor, last, atMs: this.#scheduler.nowMs });
    }
  }

  logLost(): void {
    this.#isLogLost = true;
  }

  /** @param cursor of the row before the commit */
  committed(plan: CommitPlan, { p, epoch, cursor: reached }: Committed, { cursor, timerKeys }: { cursor: number; timerKeys: ReadonlySet<string> }): void {
    const acquisition = this.#acquired.get(p);
    if (this.#isLogLost || acquisition?.epoch !== epoch || this.#scheduler.nowMs - acquisition.atMs >= HELD_MS) return;
    const ids = [...plan.processed.values()].flatMap(({ partition, commandId }) => (partition === p ? [commandId] : []));
    const { last } = acquisition;
    for (const [index, id] of ids.entries()) {
      if (!timerKeys.has(id) || acquisition.cursor >= last) continue;
      const isBefore = reached < last || ids.slice(index + 1).some((later) => this.#stands(p, later, { after: cursor, last }));
      if (isBefore) this.#breach(`timer ${id} was applied before commands of partition ${p} that stood in the log when it was acquired, up to ${last}`);
      else this.counts.timersHeld += 1;
    }
  }

  #stands(p: number, commandId: string, { after, last }: { after: number; last: number }): boolean {
    return this.#history.some(
      ({ entry: { partition, sequence }, command }) => partition === p && command?.commandId === commandId && sequence > after && sequence <= last,
    );
  }
}
