import type { Clock } from '#shared/clock.ts';

/** Consecutive posts without a response that open the breaker. */
const MAX_SILENT = 5;
/** Doubled after each probe without a response. */
const OPEN_FIRST_MS = 5_000;
const OPEN_LONGEST_MS = 30_000;

/** Outcome of a post: any response, none in time, or an error that says nothing about the receiver. */
export type PostResult = 'answered' | 'silent' | 'unknown';

/** Permission for one post. */
export interface Pass {
  isProbe: boolean;
}

/** Bypasses the breaker. */
export const UNCHECKED: Pass = { isProbe: false };

/**
 * Circuit breaker of one receiver: each post to a silent one holds a slot until its timeout. After a pause one post is the probe. A
 * response closes the breaker, silence opens it for longer.
 */
export class ReceiverBreaker {
  readonly #clock: Clock;
  #silent = 0;
  #openUntilMs: number | null = null;
  #openMs = OPEN_FIRST_MS;
  #isProbing = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @returns a pass, to be returned through `leave`; or the milliseconds to wait */
  enter(): Pass | number {
    if (this.#openUntilMs === null) return { isProbe: false };
    const restMs = this.#openUntilMs - this.#clock.nowMs();
    if (restMs > 0) return restMs;
    if (this.#isProbing) return OPEN_FIRST_MS;
    this.#isProbing = true;
    return { isProbe: true };
  }

  leave(result: PostResult, { isProbe }: Pass): 'opened' | 'closed' | null {
    const wasOpen = this.#openUntilMs !== null;
    if (isProbe) this.#isProbing = false;
    if (result === 'unknown') return null;
    if (result === 'answered') {
      this.#silent = 0;
      this.#openUntilMs = null;
      this.#openMs = OPEN_FIRST_MS;
      return wasOpen ? 'closed' : null;
    }
    this.#silent += 1;
    // Posts that were in flight when the breaker opened are no further evidence.
    if (this.#silent < MAX_SILENT || (wasOpen && !isProbe)) return null;
    this.#openUntilMs = this.#clock.nowMs() + this.#openMs;
    this.#openMs = Math.min(this.#openMs * 2, OPEN_LONGEST_MS);
    return wasOpen ? null : 'opened';
  }
}
