import { type Clock, steadyClock } from '#shared/clock.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { StaleVariable } from '../engine/variables/stale-variables.ts';
import type { StoredCustomer } from '../store/port/customer-store.ts';

/** Between looks at the database for a value that a worker fetches. */
const LOOK_MS = 50;
/** Values of a tool that was late are not waited for during this time; they are fetched nevertheless. */
const NO_WAIT_MS = 30_000;

/** A value of a variable to be fetched for a customer. */
export interface FetchRequest extends StaleVariable {
  customerId: string;
  sessionId: string;
  turnId: string;
  bundleHash: string;
}

interface FetchedDeps {
  /** Has a worker fetch and store the value. Repeats within two minutes have no effect. */
  fetch(request: FetchRequest): Promise<unknown>;
  /** Monotonic; absent: this process's. */
  clock?: Clock;
  log: Log;
}

/** Has stale values fetched, and waits for them for a limited time. */
export class FetchedValues {
  readonly #deps: FetchedDeps;
  /** By tool: until when its values are not waited for, by the clock. */
  readonly #late = new Map<string, number>();

  constructor(deps: FetchedDeps) {
    this.#deps = deps;
  }

  /**
   * @param read of the customer
   * @param waitMs longest
   * @returns what is stored then; null: nothing was waited for
   */
  async of(requests: readonly FetchRequest[], read: () => Promise<StoredCustomer>, waitMs: number): Promise<StoredCustomer | null> {
    const { clock = steadyClock } = this.#deps;
    const endsAtMs = clock.nowMs() + waitMs;
    for (const request of requests) this.#request(request);
    const awaited = requests.filter(({ toolId }) => (this.#late.get(toolId) ?? 0) <= clock.nowMs());
    if (awaited.length === 0) return null;
    let stored: StoredCustomer | null = null;
    let missing: readonly FetchRequest[] = awaited;
    while (missing.length > 0 && clock.nowMs() < endsAtMs) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      stored = await read();
      const { values } = stored;
      missing = missing.filter(
        ({ customerId, name, writtenAtMs }) =>
          !values.some((value) => value.key === customerId && value.name === name && value.updatedAtMs > (writtenAtMs ?? 0)),
      );
    }
    for (const { toolId } of missing) this.#late.set(toolId, clock.nowMs() + NO_WAIT_MS);
    return stored;
  }

  #request(request: FetchRequest): void {
    const { fetch, log } = this.#deps;
    const { sessionId, name } = request;
    fetch(request).catch((error: unknown) =>
      log.warn({ err: error, session_id: sessionId, variable: name }, 'a variable could not be requested from its tool'),
    );
  }
}
