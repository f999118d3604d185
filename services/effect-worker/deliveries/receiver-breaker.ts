import type { Clock } from '#shared/clock.ts';

/** Posts in a row that brought no answer, after which a receiver is left alone. */
const MAX_SILENT = 5;
/** For how long at first; doubled after each probe that brings no answer either. */
const OPEN_FIRST_MS = 5_000;
const OPEN_LONGEST_MS = 30_000;

/** What came of a post: an answer of any kind, none in time, or nothing that says anything about the receiver. */
export type PostResult = 'answered' | 'silent' | 'unknown';

/** Leave to post; it is given back with what came of the post. */
export interface Pass {
  isProbe: boolean;
}

/** For a post that is made whatever the breaker says. */
export const UNCHECKED: Pass = { isProbe: false };

/**
 * Keeps posts away from a receiver that does not answer, each of which would hold a slot for its whole time. After a pause one post goes
 * through as a probe: an answer closes the breaker, silence opens it for longer.
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

  /** @returns leave to post, for which `leave` is called with what came of it; else the milliseconds until it is worth asking again */
  enter(): Pass | number {
    if (this.#openUntilMs === null) return { isProbe: false };
    const restMs = this.#openUntilMs - this.#clock.nowMs();
    if (restMs > 0) return restMs;
    if (this.#isProbing) return OPEN_FIRST_MS;
    this.#isProbing = true;
    return { isProbe: true };
  }

  /** @returns whether the breaker has opened, or closed, by this */
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
    // Posts that were under way when it opened end in silence too, and say nothing new.
    if (this.#silent < MAX_SILENT || (wasOpen && !isProbe)) return null;
    this.#openUntilMs = this.#clock.nowMs() + this.#openMs;
    this.#openMs = Math.min(this.#openMs * 2, OPEN_LONGEST_MS);
    return wasOpen ? null : 'opened';
  }
}
