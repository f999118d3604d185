import { SwitchyardError } from '#shared/errors/switchyard-error.ts';

/** What a worker holds of vectors as text, beside the upstream's bodies that they are read from. */
const MAX_CHARS = 256 * 1024 * 1024;
const RETRY_MS = 1_000;

/** Bounds the vectors that calls in flight may have together: one call may have tens of megabytes. */
export class VectorBudget {
  readonly #most: number;
  #chars = 0;

  constructor(most = MAX_CHARS) {
    this.#most = most;
  }

  /** @returns what releases it, once @throws `router.provider_overloaded` when others have too many */
  enter(chars: number): () => void {
    if (this.#chars > 0 && this.#chars + chars > this.#most) {
      throw new SwitchyardError('router.provider_overloaded', 'Too many large requests are in flight', { details: { retryAfterMs: RETRY_MS } });
    }
    this.#chars += chars;
    return () => {
      this.#chars -= chars;
    };
  }
}
