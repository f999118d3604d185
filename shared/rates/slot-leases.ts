import type { Cache } from '../storage/cache.ts';

/** A slot of a process that died is free after this time. */
const LEASE_MS = 15_000;
const EXTEND_MS = 5_000;

/** One acquisition of a slot. The first of `release`, `leave` and a refusal ends it; what comes later does nothing. */
export interface SlotHold {
  /** False when the key has as many calls in flight as it may have. @throws what the cache throws: then the hold is to be ended */
  acquired: Promise<boolean>;
  /** Frees the slot once no other delivery of the call has it. Never throws: a slot that the cache can't free now ends by itself. */
  release(): void;
  /** The slot is extended no longer, unless another delivery of the call has it. It is freed if that one has released it. */
  leave(): void;
}

interface Held {
  keyId: string;
  limit: number;
  /** Two while a call that was delivered again is still ending here. */
  holders: number;
  /** By one of them, so that the last one frees it. */
  isReleased: boolean;
}

/** Slots of calls in flight, extended while their calls live. One timer serves all. */
export class SlotLeases {
  readonly #cache: Cache;
  readonly #extendMs: number;
  readonly #held = new Map<string, Held>();
  #timer: NodeJS.Timeout | null = null;

  constructor(cache: Cache, extendMs: number = EXTEND_MS) {
    this.#cache = cache;
    this.#extendMs = extendMs;
  }

  acquire(keyId: string, callId: string, limit: number): SlotHold {
    // Before the answer: the hold may end before it.
    const held = this.#held.get(callId);
    this.#held.set(callId, { keyId, limit, holders: (held?.holders ?? 0) + 1, isReleased: held?.isReleased ?? false });
    let hasEnded = false;
    const end = (isReleased: boolean) => {
      if (!hasEnded) this.#end(callId, isReleased);
      hasEnded = true;
    };
    const ask = async () => {
      const isFree = await this.#cache.acquireSlot(slotsOf(keyId), callId, limit, LEASE_MS);
      if (!isFree) end(false);
      else if (!this.#held.has(callId)) this.#free(keyId, callId);
      if (this.#held.size > 0) this.#timer ??= setInterval(() => this.#extend(), this.#extendMs).unref();
      return isFree;
    };
    return { acquired: ask(), release: () => end(true), leave: () => end(false) };
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    for (const [callId, { keyId }] of this.#held) this.#free(keyId, callId);
    this.#held.clear();
  }

  #end(callId: string, isReleased: boolean): void {
    const held = this.#held.get(callId);
    if (held !== undefined) {
      held.isReleased ||= isReleased;
      held.holders -= 1;
      if (held.holders === 0) {
        this.#held.delete(callId);
        if (held.isReleased) this.#free(held.keyId, callId);
      }
    }
    if (this.#held.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  #free(keyId: string, callId: string): void {
    this.#cache.releaseSlot(slotsOf(keyId), callId).catch(() => {});
  }

  #extend(): void {
    const ofKeys = new Map<string, { limit: number; callIds: string[] }>();
    for (const [callId, { keyId, limit }] of this.#held) {
      const calls = ofKeys.get(keyId);
      if (calls === undefined) ofKeys.set(keyId, { limit, callIds: [callId] });
      else calls.callIds.push(callId);
    }
    for (const [keyId, { limit, callIds }] of ofKeys) this.#cache.extendSlots(slotsOf(keyId), callIds, limit, LEASE_MS).catch(() => {});
  }
}

function slotsOf(keyId: string): string {
  return `rate:slots:${keyId}`;
}
