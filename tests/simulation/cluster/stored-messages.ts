import { fromWireId } from '../../../bus/nats/connection/wire-id.ts';

/** A leader stores within this what it can store; a message that has been in process for longer may be published under another id (docs/adr/0134). */
const LOST_AFTER_MS = 3_000;

/** All messages that a stream has ever stored. Finds those that it has stored under two ids, though the first one did not count as lost. */
export class StoredMessages {
  /** By id: when the leader has answered first and last that it is in process. */
  readonly #answers = new Map<string, { firstAtMs: number; lastAtMs: number }>();
  /** The ids under which a message is stored. */
  readonly #stored = new Map<string, Set<string>>();

  inProcess(wireId: string, atMs: number): void {
    this.#answers.set(wireId, { firstAtMs: this.#answers.get(wireId)?.firstAtMs ?? atMs, lastAtMs: atMs });
  }

  has(messageId: string): boolean {
    return this.#stored.has(messageId);
  }

  add(wireId: string, breach: (what: string) => void): void {
    const messageId = fromWireId(wireId);
    const ids = this.#stored.get(messageId) ?? new Set();
    this.#stored.set(messageId, ids.add(wireId));
    const last = [...ids].sort((left, right) => timesAgain(left) - timesAgain(right)).at(-1);
    for (const id of ids) {
      const { firstAtMs = 0, lastAtMs = 0 } = this.#answers.get(id) ?? {};
      if (id !== last && lastAtMs - firstAtMs < LOST_AFTER_MS)
        breach(`${id} and ${last} are stored, and the first was in process for ${lastAtMs - firstAtMs} ms`);
    }
  }
}

function timesAgain(wireId: string): number {
  return Number(/;(\d+)$/.exec(wireId)?.[1] ?? 0);
}
