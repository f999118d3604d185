import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Subscription, UsageBacklog, UsageConsumeOptions, UsageLog, UsageMessage } from '../bus.ts';
import { pauseFor } from '../pause.ts';
import { assertUsageSize, FIRST_BACKOFF_MS, LONGEST_BACKOFF_MS } from '../usage-limits.ts';
import { DEDUPE_WINDOW_MS, DedupeWindow } from './dedupe-window.ts';
import { isBelowCapacity } from './limits.ts';
import type { Bounded, Closable, ComponentDeps } from './types.ts';
import { type UsageRow, UsageStore } from './usage-store.ts';

/** The usage log as one table, from which accepted records are deleted. */
export async function openUsageLog(deps: ComponentDeps): Promise<UsageLog & Bounded & Closable> {
  const log = new MemoryUsageLog(deps);
  await log.recover();
  return log;
}

interface Consumer {
  handler: (records: UsageMessage[]) => Promise<void>;
  maxBatch: number;
  everyMs: number;
  stop: AbortController;
  wake: () => void;
  ended: Promise<void>;
}

class MemoryUsageLog implements UsageLog, Bounded, Closable {
  readonly #deps: ComponentDeps;
  readonly #store: UsageStore;
  /** Each value resolves once the record is stored. */
  readonly #seen: DedupeWindow<Promise<void>>;
  readonly #consumers = new Set<Consumer>();
  /** Sequences that a consumer has. */
  readonly #inFlight = new Set<number>();
  /** Sequences of a failed statement are not reused. */
  #assigned = 0;
  #records = 0;
  #sizeBytes = 0;
  #closing: 'no' | 'readers' | 'all' = 'no';

  constructor(deps: ComponentDeps) {
    this.#deps = deps;
    this.#store = new UsageStore(deps);
    this.#seen = new DedupeWindow(deps.clock);
  }

  /** Refills the dedupe window from the table; ids of accepted records are forgotten. */
  async recover(): Promise<void> {
    const { last, records, sizeBytes } = await this.#store.state();
    this.#assigned = last;
    this.#records = records;
    this.#sizeBytes = sizeBytes;
    const recent = await this.#store.storedAfter(this.#deps.clock.nowMs() - DEDUPE_WINDOW_MS);
    for (const { messageId, storedAtMs } of recent) this.#seen.add(messageId, Promise.resolve(), storedAtMs);
  }

  async append(messageId: string, body: string): Promise<void> {
    this.#assertOpen();
    assertUsageSize(body);
    // The first may be in flight: the repeat resolves or fails with it.
    const earlier = this.#seen.find(messageId);
    if (earlier !== null) return earlier;
    this.#store.assertCapacity();
    if (this.#sizeBytes > this.#deps.limits.usageBytes) throw new SwitchyardError('bus.full', 'the usage log is full');
    this.#assigned += 1;
    const row = { sequence: this.#assigned, messageId, body, sizeBytes: Buffer.byteLength(body), storedAtMs: this.#deps.clock.nowMs() };
    const stored = this.#store.insert(row);
    this.#seen.add(messageId, stored);
    try {
      await stored;
    } catch (error) {
      this.#seen.delete(messageId);
      throw error;
    }
    this.#records += 1;
    this.#sizeBytes += row.sizeBytes;
    this.#wakeAll();
  }

  consume(handler: Consumer['handler'], { maxBatch, everyMs = 0 }: UsageConsumeOptions): Subscription {
    if (this.#closing !== 'no') throw closed();
    const consumer: Consumer = { handler, maxBatch, everyMs, stop: new AbortController(), wake: () => {}, ended: Promise.resolve() };
    this.#consumers.add(consumer);
    consumer.ended = this.#run(consumer);
    return { stop: () => this.#stop(consumer) };
  }

  async backlog(): Promise<UsageBacklog> {
    this.#assertOpen();
    return { records: this.#records, oldestAtMs: await this.#store.oldestAtMs() };
  }

  hasCapacity(): boolean {
    return isBelowCapacity(this.#sizeBytes, this.#deps.limits.usageBytes);
  }

  async stopReaders(): Promise<void> {
    if (this.#closing === 'no') this.#closing = 'readers';
    await Promise.all([...this.#consumers].map((consumer) => this.#stop(consumer)));
  }

  async shut(): Promise<void> {
    this.#closing = 'all';
    await this.#store.idle();
  }

  async #stop(consumer: Consumer): Promise<void> {
    consumer.stop.abort();
    consumer.wake();
    await consumer.ended;
    this.#consumers.delete(consumer);
  }

  /** Never rejects. */
  async #run(consumer: Consumer): Promise<void> {
    const { signal: stopped } = consumer.stop;
    let pauseMs = FIRST_BACKOFF_MS;
    while (!stopped.aborted) {
      // Made before the look, so that nothing stored after it is missed.
      const woken = new Promise<void>((resolve) => {
        consumer.wake = resolve;
      });
      try {
        const nextAt = performance.now() + consumer.everyMs;
        const count = await this.#deliver(consumer);
        pauseMs = FIRST_BACKOFF_MS;
        if (count === 0 && !stopped.aborted) await woken;
        // A full batch has others behind it.
        else if (consumer.everyMs > 0 && count < consumer.maxBatch) await pauseFor(nextAt - performance.now(), stopped);
      } catch (error) {
        this.#deps.log.warn({ err: error, pause_ms: pauseMs }, 'a batch of usage records was rejected: it is delivered again');
        await pauseFor(pauseMs, stopped);
        pauseMs = Math.min(pauseMs * 2, LONGEST_BACKOFF_MS);
      }
    }
  }

  /** @returns how many records were accepted; 0: none is free */
  async #deliver({ handler, maxBatch, stop }: Consumer): Promise<number> {
    const rows = await this.#claim(maxBatch);
    if (rows.length === 0) return 0;
    let accepted = 0;
    try {
      if (stop.signal.aborted) return 0;
      await handler(rows.map(({ messageId, body }) => ({ messageId, body })));
      await this.#store.remove(rows.map(({ sequence }) => sequence));
      accepted = rows.length;
      this.#records -= accepted;
      for (const { sizeBytes } of rows) this.#sizeBytes -= sizeBytes;
      return accepted;
    } finally {
      for (const { sequence } of rows) this.#inFlight.delete(sequence);
      if (accepted === 0) this.#wakeAll();
    }
  }

  #wakeAll(): void {
    for (const { wake } of this.#consumers) wake();
  }

  /** Another consumer may claim during the look: what it has taken is left out. */
  async #claim(maxBatch: number): Promise<UsageRow[]> {
    if (this.#records <= this.#inFlight.size) return [];
    const found = await this.#store.read([...this.#inFlight], maxBatch);
    const free = found.filter(({ sequence }) => !this.#inFlight.has(sequence));
    for (const { sequence } of free) this.#inFlight.add(sequence);
    return free;
  }

  #assertOpen(): void {
    if (this.#closing === 'all') throw closed();
  }
}

function closed(): SwitchyardError {
  return new SwitchyardError('bus.closed', 'the bus is closed');
}
