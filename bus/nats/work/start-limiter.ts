/** How much of a tick of the event loop, from its first start of an item, is for starts. */
const LEAST_SLICE_MS = 20;
/** The slice as a share of the tick before: where much is in flight, and ticks are long, 20 ms of each would be little. */
const SLICE_SHARE = 1 / 3;
/** A longer tick has more to read: without a bound, each would make the next one longer. */
const LONGEST_SLICE_MS = 80;
/** Begun before what they do asynchronously is counted. */
const AT_ONCE = 16;

interface StartLimiterOptions {
  /** Called when the last item that waited has begun. */
  onEmpty: () => void;
  /** Monotonic; absent: `performance.now()`. */
  nowMs?: () => number;
}

/**
 * Begins items in order, for a bounded part of each tick. Hundreds that a socket brings at once would keep the event loop busy for seconds, in which no reply is
 * read, no heartbeat is sent, and leases end. Those that wait begin in the next ticks, between which sockets are read and timers fire.
 */
export class StartLimiter {
  readonly #onEmpty: () => void;
  readonly #nowMs: () => number;
  readonly #waiting: { begin: () => void; sinceMs: number }[] = [];
  /** Of this tick; null: nothing was begun in it. */
  #sliceBeganAt: number | null = null;
  #sliceMs = LEAST_SLICE_MS;
  #begunAtOnce = 0;
  #isContinuing = false;

  constructor({ onEmpty, nowMs = () => performance.now() }: StartLimiterOptions) {
    this.#onEmpty = onEmpty;
    this.#nowMs = nowMs;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** How long the next one has waited. */
  waitedMs(): number {
    const [next] = this.#waiting;
    return next === undefined ? 0 : this.#nowMs() - next.sinceMs;
  }

  /** @param begin called now or in a later tick; must not throw */
  run(begin: () => void): void {
    if (this.#waiting.length === 0 && this.#mayBegin()) {
      begin();
      return;
    }
    this.#waiting.push({ begin, sinceMs: this.#nowMs() });
    this.#continueInTick();
  }

  #mayBegin(): boolean {
    if (this.#sliceBeganAt === null) {
      this.#sliceBeganAt = this.#nowMs();
      this.#begunAtOnce = 0;
      setImmediate(() => this.#onNextTick());
    }
    if (this.#begunAtOnce >= AT_ONCE || this.#isSliceOver(this.#sliceBeganAt)) return false;
    this.#begunAtOnce += 1;
    return true;
  }

  #isSliceOver(beganAt: number): boolean {
    return this.#nowMs() - beganAt >= this.#sliceMs;
  }

  /** Behind the promises of those that were begun, so that the time these take counts. */
  #continueInTick(): void {
    if (this.#isContinuing || this.#sliceBeganAt === null || this.#isSliceOver(this.#sliceBeganAt)) return;
    this.#isContinuing = true;
    queueMicrotask(() =>
      process.nextTick(() => {
        this.#isContinuing = false;
        this.#begunAtOnce = 0;
        this.#beginWaiting();
      }),
    );
  }

  #onNextTick(): void {
    if (this.#sliceBeganAt !== null) {
      const shareMs = SLICE_SHARE * (this.#nowMs() - this.#sliceBeganAt);
      this.#sliceMs = Math.min(Math.max(LEAST_SLICE_MS, shareMs), LONGEST_SLICE_MS);
    }
    this.#sliceBeganAt = null;
    this.#beginWaiting();
  }

  #beginWaiting(): void {
    if (this.#waiting.length === 0) return;
    while (this.#waiting.length > 0 && this.#mayBegin()) this.#waiting.shift()?.begin();
    if (this.#waiting.length > 0) this.#continueInTick();
    else this.#onEmpty();
  }
}
