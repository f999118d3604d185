import { DeadlineTimer } from './deadline-timer.ts';
import { SlotMap } from './slot-map.ts';

/** What falls due so soon after something else waits for it, so that many are not each looked for among all. */
const GATHER_MS = 10;

/** One time limit. It belongs to whoever has begun it, and may be begun anew. */
export interface Deadline {
  /** By `performance.now()`. */
  at: number;
  /** Where it stands while it runs. */
  slot: number | null;
  readonly onOver: () => void;
}

/**
 * Time limits that are nearly never met, on one timer. Of its own timers Node keeps a list for each length, which it makes with the first
 * one and drops with the last: where one request comes after the other, that costs each of them a list, for each of its limits. Here a
 * limit is a number that is written down. It is met up to 10 ms late. They keep no process alive.
 */
export class Deadlines {
  readonly #running = new SlotMap<Deadline>();
  readonly #timer = new DeadlineTimer(() => this.#meet());

  /** @param onOver called each time that it is met, in the asynchronous context in which this was made; must not throw */
  begin(afterMs: number, onOver: () => void): Deadline {
    const deadline: Deadline = { at: 0, slot: null, onOver };
    this.restart(deadline, afterMs);
    return deadline;
  }

  /** It begins anew, whether it runs, was stopped, or was met. */
  restart(deadline: Deadline, afterMs: number): void {
    deadline.at = performance.now() + afterMs;
    deadline.slot ??= this.#running.add(deadline);
    this.#timer.lookAt(deadline.at);
  }

  stop(deadline: Deadline): void {
    if (deadline.slot === null) return;
    this.#running.remove(deadline.slot);
    deadline.slot = null;
  }

  /** @returns when to look again */
  #meet(): number {
    const now = performance.now();
    const due: Deadline[] = [];
    let next = Number.POSITIVE_INFINITY;
    for (const deadline of this.#running.values()) {
      if (deadline.at <= now) due.push(deadline);
      else if (deadline.at < next) next = deadline.at;
    }
    due.sort((one, other) => one.at - other.at);
    for (const deadline of due) {
      // One that was met before may have stopped it, or put it off.
      if (deadline.slot === null || deadline.at > now) continue;
      this.stop(deadline);
      deadline.onOver();
    }
    // Those that have begun meanwhile have said so to the timer themselves.
    return due.length === 0 ? next : Math.max(next, now + GATHER_MS);
  }
}
