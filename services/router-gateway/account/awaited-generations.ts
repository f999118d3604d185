import { setTimeout as delay } from 'node:timers/promises';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { GenerationRow } from './generation-rows.ts';

export interface AwaitedGenerationsDeps {
  /** Rows with one of the ids. */
  read(generationIds: readonly string[]): Promise<GenerationRow[]>;
  limits: { readonly generationWaitMs: number; readonly generationPollMs: number; readonly generationWaiters: number; readonly retryAfterMs: number };
}

interface Waiter {
  generationId: string;
  untilMs: number;
  settle(found: GenerationRow | null): void;
  fail(error: unknown): void;
}

/** Waits for rows of the ledger, which is written behind the calls. One query at a time serves all that wait. */
export class AwaitedGenerations {
  readonly #deps: AwaitedGenerationsDeps;
  readonly #waiters = new Set<Waiter>();
  #isPolling = false;

  constructor(deps: AwaitedGenerationsDeps) {
    this.#deps = deps;
  }

  get waiting(): number {
    return this.#waiters.size;
  }

  /**
   * Waits up to `generationWaitMs` for the row; null: there is none, or the signal has aborted.
   * @throws `service.overloaded` for a row that is not there while too many are waited for; the database's error
   */
  async find(generationId: string, signal: AbortSignal): Promise<GenerationRow | null> {
    const [found] = await this.#deps.read([generationId]);
    const { generationWaiters, generationWaitMs, retryAfterMs } = this.#deps.limits;
    if (found !== undefined || signal.aborted) return found ?? null;
    if (this.#waiters.size >= generationWaiters) {
      throw new SwitchyardError('service.overloaded', 'Too many generations are waited for', { details: { retryAfterMs } });
    }
    return new Promise((resolve, reject) => {
      const end = () => {
        this.#waiters.delete(waiter);
        signal.removeEventListener('abort', onAbort);
      };
      const waiter: Waiter = {
        generationId,
        untilMs: performance.now() + generationWaitMs,
        settle: (row) => {
          end();
          resolve(row);
        },
        fail: (error) => {
          end();
          reject(error);
        },
      };
      const onAbort = () => waiter.settle(null);
      signal.addEventListener('abort', onAbort);
      this.#waiters.add(waiter);
      if (!this.#isPolling) void this.#poll();
    });
  }

  async #poll(): Promise<void> {
    this.#isPolling = true;
    while (this.#waiters.size > 0) {
      await delay(this.#deps.limits.generationPollMs);
      const asked = [...this.#waiters];
      if (asked.length === 0) break;
      try {
        const rows = await this.#deps.read([...new Set(asked.map(({ generationId }) => generationId))]);
        const byId = new Map(rows.map((row) => [row.generationId, row]));
        const nowMs = performance.now();
        for (const { generationId, untilMs, settle } of asked) {
          const row = byId.get(generationId) ?? null;
          if (row !== null || nowMs >= untilMs) settle(row);
        }
      } catch (error) {
        for (const { fail } of asked) fail(error);
      }
    }
    this.#isPolling = false;
  }
}
