import type { CommitPlan } from '../../actors/runtime/apply/commit-plan.ts';

/** Checks that no timer is applied that an earlier commit has disarmed. */
export class TimerWatch {
  readonly #breach: (what: string) => void;
  readonly #disarmed = new Set<string>();

  constructor(breach: (what: string) => void) {
    this.#breach = breach;
  }

  /** A commit of a partition was stored. */
  committed(plan: CommitPlan, p: number): void {
    for (const { partition, commandId } of plan.processed.values()) {
      if (partition === p && this.#disarmed.has(commandId)) this.#breach(`${commandId} was applied though it was disarmed`);
    }
    for (const { partition, key, dueAtMs } of plan.timers.values()) {
      if (partition !== p) continue;
      if (dueAtMs === null) this.#disarmed.add(key);
      else this.#disarmed.delete(key);
    }
  }
}
