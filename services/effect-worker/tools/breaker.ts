import type { Clock } from '#shared/clock.ts';
import { ToolFailure } from './tool-failure.ts';

const MAX_FAILURES = 5;
/** After it one more failure opens the breaker again; one response resets it. */
const OPEN_MS = 10_000;

/** Circuit breaker of one tool server: open, calls fail without tries. */
export class Breaker {
  readonly #clock: Clock;
  #failures = 0;
  #openUntilMs = 0;
  #because: ToolFailure | null = null;
  /** Calls that wait for the same connection get the same failure. */
  readonly #counted = new WeakSet<ToolFailure>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @throws ToolFailure while open */
  check(): void {
    if (this.#because !== null && this.#clock.nowMs() < this.#openUntilMs) {
      const { kind, message, status } = this.#because;
      throw new ToolFailure(kind === 'auth_failed' ? kind : 'unreachable', message, { status, retryable: false });
    }
  }

  /** @param failure null: the server has responded */
  note(failure: ToolFailure | null): void {
    switch (failure?.kind) {
      case 'unreachable':
      case 'lost':
      case 'busy':
        if (this.#counted.has(failure)) return;
        this.#counted.add(failure);
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
