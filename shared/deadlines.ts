import { DeadlineTimer } from './deadline-timer.ts';
import { SlotMap } from './slot-map.ts';

/** Batches deadlines that expire close together, so that one scan handles many. */
const BATCH_MS = 10;

export interface Deadline {
  /** By `performance.now()`. */
  at: number;
  /** Null when it does not run. */
  slot: number | null;
  readonly onOver: () => void;
}

/**
 * Time limits that rarely expire, on one timer. Node keeps a list of timers per duration, made with the first and dropped with the last: under
 * sequential requests that costs a list per limit. Here a limit is a stored number. Limits expire up to 10 ms late and do not keep the process
 * alive.
 */
export class Deadlines {
  readonly #running = new SlotMap<Deadline>();
  readonly #timer = new DeadlineTimer(() => this.#expire());

  /** @param onOver called at each expiry, in this constructor's asynchronous context; must not throw */
  begin(afterMs: number, onOver: () => void): Deadline {
    const deadline: Deadline = { at: 0, slot: null, onOver };
    this.restart(deadline, afterMs);
    return deadline;
  }

  /** Whether it runs, was stopped, or has expired. */
  restart(deadline: Deadline, afterMs: number): void {
    deadline.at = performance.now() + afterMs;
    deadline.slot ??= this.#running.add(deadline);
    this.#timer.schedule(deadline.at);
  }

  stop(deadline: Deadline): void {
    if (deadline.slot === null) return;
    this.#running.remove(deadline.slot);
    deadline.slot = null;
  }

  /** @returns when to scan again */
  #expire(): number {
    const now = performance.now();
    const due: Deadline[] = [];
    let next = Number.POSITIVE_INFINITY;
    for (const deadline of this.#running.values()) {
      if (deadline.at <= now) due.push(deadline);
      else if (deadline.at < next) next = deadline.at;
    }
    due.sort((one, other) => one.at - other.at);
    for (const deadline of due) {
      // An earlier callback may have stopped or restarted it.
      if (deadline.slot === null || deadline.at > now) continue;
      this.stop(deadline);
      deadline.onOver();
    }
    // New deadlines have called `schedule` themselves.
    return due.length === 0 ? next : Math.max(next, now + BATCH_MS);
  }
}
