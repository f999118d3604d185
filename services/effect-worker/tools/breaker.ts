import type { Clock } from '#shared/clock.ts';
import { ToolFailure } from './tool-failure.ts';

/** Transport failures in a row after which a server is left alone. */
const MAX_FAILURES = 5;
/** For this long. Then one more failure closes the door again, and one answer opens it for good. */
const OPEN_MS = 10_000;

/** Keeps calls away from a server that is not there, or does not take our key: they fail at once, instead of each after its own tries. */
export class Breaker {
  readonly #clock: Clock;
  #failures = 0;
  #openUntilMs = 0;
  #because: ToolFailure | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @throws ToolFailure while the server is left alone */
  check(): void {
    if (this.#because !== null && this.#clock.nowMs() < this.#openUntilMs) {
      const { kind, message, status } = this.#because;
      throw new ToolFailure(kind === 'auth_failed' ? kind : 'unreachable', message, { status, retryable: false });
    }
  }

  /** @param failure null: the server has answered */
  note(failure: ToolFailure | null): void {
    switch (failure?.kind) {
      case 'unreachable':
      case 'lost':
      case 'busy':
        this.#failures += 1;
        if (this.#failures >= MAX_FAILURES) this.#open(failure);
        return;
      case 'auth_failed':
        this.#open(failure);
        return;
      case 'timeout':
      case 'stopped':
        return;
      case 'session_lost':
      case 'error':
      case 'unreadable':
      case undefined:
        this.#failures = 0;
        this.#because = null;
        return;
    }
  }

  #open(failure: ToolFailure): void {
    this.#because = failure;
    this.#openUntilMs = this.#clock.nowMs() + OPEN_MS;
  }
}
