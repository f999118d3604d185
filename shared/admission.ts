/** How long what is let in may wait for its turn. Past it whoever asks is better off asking elsewhere, or later. */
const MOST_WAIT_MS = 5_000;
/** So much may wait whatever its pace: a handful of long calls on a small deployment is no overload. */
const FREE_WAITING = 64;
/** Between two looks. Less would say little about the pace of what takes a second; more would let much in before it is known to wait. */
export const LOOK_EVERY_MS = 500;
/** What the pace is reckoned from. Also how long a look stands: what was true before says nothing about now. */
const LOOKS_RETAINED_MS = 10_000;

/** What is seen of a queue. */
interface QueueLook {
  atMs: number;
  /** In the queue, and taken up by nobody. */
  waiting: number;
  /** Taken out of it since ever. */
  dequeued: number;
}

/**
 * Says whether what is let in now would wait too long, from looks at the queue that it would wait in. A bound on how much waits says
 * little: a thousand calls are nothing to one deployment and an hour to another.
 *
 *   expected wait = (waiting at the last look + let in since − taken since, at the pace of the last looks) / pace
 */
export class QueueingDelay {
  #looks: QueueLook[] = [];
  #admitted = 0;
  /** What the last looks say; null while they say that nothing waits long. Reckoned once a look, and asked with every request. */
  #backlog: { atMs: number; waiting: number; dequeuedPerMs: number } | null = null;

  /** Whether it is time to look again. */
  isDue(nowMs: number): boolean {
    const last = this.#looks.at(-1);
    return last === undefined || nowMs - last.atMs >= LOOK_EVERY_MS;
  }

  look(look: QueueLook): void {
    const last = this.#looks.at(-1);
    // Counted anew: it is another queue than before.
    if (last !== undefined && look.dequeued < last.dequeued) this.#looks = [];
    // While nothing waits, what is taken says little: most work may never have come to the queue.
    if (look.waiting === 0) this.#looks = [];
    this.#looks = [...this.#looks.filter(({ atMs }) => look.atMs - atMs < LOOKS_RETAINED_MS), look];
    this.#admitted = 0;
    this.#backlog = backlogOf(this.#looks);
  }

  /** Asked before something is let in, and counted as let in when it is true. */
  admits(nowMs: number): boolean {
    if (this.#isBehind(nowMs)) return false;
    this.#admitted += 1;
    return true;
  }

  #isBehind(nowMs: number): boolean {
    if (this.#backlog === null || nowMs - this.#backlog.atMs >= LOOKS_RETAINED_MS) return false;
    const { atMs, dequeuedPerMs } = this.#backlog;
    const waiting = this.#backlog.waiting + this.#admitted - dequeuedPerMs * (nowMs - atMs);
    return waiting > FREE_WAITING && waiting > dequeuedPerMs * MOST_WAIT_MS;
  }
}

/** Null: nothing waits, or it has just come and who takes it may have nothing else to do. That takes two looks to tell. */
function backlogOf(looks: readonly QueueLook[]): { atMs: number; waiting: number; dequeuedPerMs: number } | null {
  const [first] = looks;
  const [before, last] = looks.slice(-2);
  if (first === undefined || before === undefined || last === undefined) return null;
  if (before.waiting <= FREE_WAITING || last.waiting <= FREE_WAITING) return null;
  return { atMs: last.atMs, waiting: last.waiting, dequeuedPerMs: (last.dequeued - first.dequeued) / (last.atMs - first.atMs) };
}
