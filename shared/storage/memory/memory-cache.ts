import { type Clock, steadyClock } from '../../clock.ts';
import { SwitchyardError } from '../../errors/switchyard-error.ts';
import type { Cache } from '../cache.ts';
import { checkAddend, checkKey, checkKeys, checkValue, lifetimeMsOf } from '../cache-arguments.ts';
import { ExpiryQueue } from './expiry-queue.ts';

/** Some tens of MB with small values. */
const MAX_ENTRIES = 100_000;

/** Bounds the cost of a call after a long idle time. A call adds at most one entry, so the backlog shrinks. */
const SWEPT_PER_CALL = 8;

/** Outdated queue entries before the queue is rebuilt. */
const QUEUE_SLACK = 1_024;

type Content = { kind: 'value'; text: string } | { kind: 'counter'; sum: number } | { kind: 'slots'; untilMs: Map<string, number> };

interface Entry {
  content: Content;
  expiresAtMs: number;
}

/**
 * A `Cache` in this process, without timers: expired entries are invisible, and later calls remove a few at a time.
 * @param clock monotonic, so that entries expire in time when the machine's clock is set; absent: this process's
 * @param maxEntries beyond it the entry that expires first is evicted
 */
export function memoryCache({ clock = steadyClock, maxEntries = MAX_ENTRIES }: { clock?: Clock; maxEntries?: number } = {}): Cache {
  return new MemoryCache(clock, maxEntries);
}

class MemoryCache implements Cache {
  readonly #clock: Clock;
  readonly #maxEntries: number;
  readonly #entries = new Map<string, Entry>();
  readonly #queue = new ExpiryQueue();
  #closed = false;

  constructor(clock: Clock, maxEntries: number) {
    this.#clock = clock;
    this.#maxEntries = maxEntries;
  }

  async get(key: string): Promise<string | null> {
    const content = this.#find(key, this.#enter(key))?.content;
    if (content === undefined) return null;
    if (content.kind === 'slots') throw wrongKind(key, content.kind);
    return content.kind === 'value' ? content.text : String(content.sum);
  }

  async getMany(keys: readonly string[]): Promise<(string | null)[]> {
    checkKeys(keys);
    const nowMs = this.#enter('');
    return keys.map((key) => {
      const content = this.#find(key, nowMs)?.content;
      if (content === undefined || content.kind === 'slots') return null;
      return content.kind === 'value' ? content.text : String(content.sum);
    });
  }

  async set(key: string, value: string, ttlMs: number): Promise<void> {
    const nowMs = this.#enter(key);
    checkValue(value);
    this.#put(key, { content: { kind: 'value', text: value }, expiresAtMs: nowMs + lifetimeMsOf(ttlMs) });
  }

  async delete(key: string): Promise<void> {
    this.#enter(key);
    this.#entries.delete(key);
  }

  async increment(key: string, by: number, ttlMs: number): Promise<number> {
    const nowMs = this.#enter(key);
    checkAddend(by);
    const lifetimeMs = lifetimeMsOf(ttlMs);
    const found = this.#find(key, nowMs);
    if (found === null) {
      this.#put(key, { content: { kind: 'counter', sum: by }, expiresAtMs: nowMs + lifetimeMs });
      return by;
    }
    if (found.content.kind !== 'counter') throw wrongKind(key, found.content.kind);
    found.content.sum += by;
    return found.content.sum;
  }

  async acquireSlot(key: string, owner: string, limit: number, ttlMs: number): Promise<boolean> {
    const nowMs = this.#enter(key);
    const lifetimeMs = lifetimeMsOf(ttlMs);
    const untilMs = this.#slots(key, nowMs) ?? new Map<string, number>();
    for (const [other, otherUntilMs] of untilMs) if (otherUntilMs <= nowMs) untilMs.delete(other);
    if (!untilMs.has(owner) && untilMs.size >= limit) return false;
    untilMs.set(owner, nowMs + lifetimeMs);
    // The entry expires with its last slot.
    this.#put(key, { content: { kind: 'slots', untilMs }, expiresAtMs: Math.max(...untilMs.values()) });
    return true;
  }

  async extendSlots(key: string, owners: readonly string[], limit: number, ttlMs: number): Promise<void> {
    for (const owner of owners) await this.acquireSlot(key, owner, limit, ttlMs);
  }

  async releaseSlot(key: string, owner: string): Promise<void> {
    const untilMs = this.#slots(key, this.#enter(key));
    untilMs?.delete(owner);
    if (untilMs?.size === 0) this.#entries.delete(key);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#entries.clear();
    this.#queue.retainOnly([]);
  }

  /** Removes a few expired entries. @returns the time, read once per call */
  #enter(key: string): number {
    if (this.#closed) throw new SwitchyardError('storage.closed', 'the cache is closed');
    checkKey(key);
    const nowMs = this.#clock.nowMs();
    for (let swept = 0; swept < SWEPT_PER_CALL; swept += 1) {
      const first = this.#queue.first();
      if (first === null || first.expiresAtMs > nowMs) break;
      this.#evictFirst();
    }
    return nowMs;
  }

  #find(key: string, nowMs: number): Entry | null {
    const entry = this.#entries.get(key);
    return entry === undefined || entry.expiresAtMs <= nowMs ? null : entry;
  }

  /** Expiry by owner; null when there are no slots under the key. */
  #slots(key: string, nowMs: number): Map<string, number> | null {
    const content = this.#find(key, nowMs)?.content;
    if (content === undefined) return null;
    if (content.kind !== 'slots') throw wrongKind(key, content.kind);
    return content.untilMs;
  }

  #put(key: string, entry: Entry): void {
    const known = this.#entries.get(key);
    while (known === undefined && this.#entries.size >= this.#maxEntries && this.#queue.first() !== null) this.#evictFirst();
    this.#entries.set(key, entry);
    if (known?.expiresAtMs === entry.expiresAtMs) return; // already queued
    this.#queue.add({ key, expiresAtMs: entry.expiresAtMs });
    if (this.#queue.size > 2 * this.#entries.size + QUEUE_SLACK) this.#rebuildQueue();
  }

  /** Also deletes the entry, unless its expiry was extended. */
  #evictFirst(): void {
    const first = this.#queue.first();
    if (first === null) return;
    this.#queue.removeFirst();
    if (this.#entries.get(first.key)?.expiresAtMs === first.expiresAtMs) this.#entries.delete(first.key);
  }

  #rebuildQueue(): void {
    this.#queue.retainOnly([...this.#entries].map(([key, { expiresAtMs }]) => ({ key, expiresAtMs })));
  }
}

function wrongKind(key: string, kind: Content['kind']): TypeError {
  return new TypeError(`the cache's entry ${key} is of another kind: ${kind}`);
}
