import type { UsageBacklog, UsageMessage } from '../../../bus/bus.ts';
import type { UsageRecord } from '../../../bus/messages/usage.ts';
import type { ModelBroker } from '../model-broker.ts';
import type { Process, Scheduler, SimulatedTimer } from '../scheduler.ts';

/** As the stream USAGE is declared. */
const DEDUPE_WINDOW_MS = 120_000;
const ACK_WAIT_MS = 30_000;

interface StoredRecord extends UsageMessage {
  storedAtMs: number;
  state: 'ready' | 'leased';
  timer: SimulatedTimer | null;
}

export interface UsageConsumer {
  process: Process;
  maxBatch: number;
  /** At most one batch at once. */
  isBusy: boolean;
  take(records: readonly StoredRecord[]): void;
}

/** The broker's stream of usage records: a file, which nothing but an ack removes from. */
export class ModelUsage {
  readonly #scheduler: Scheduler;
  readonly #broker: ModelBroker;
  readonly #seen = new Map<string, number>();
  records: StoredRecord[] = [];
  consumers: UsageConsumer[] = [];
  /** All records that were ever stored, by generation id: when first, and whether the call had a reservation. */
  readonly stored = new Map<string, { atMs: number; isReserved: boolean }>();
  redeliveries = 0;

  constructor(scheduler: Scheduler, broker: ModelBroker) {
    this.#scheduler = scheduler;
    this.#broker = broker;
  }

  /** Whether a message is within the dedupe window. */
  has(wireId: string): boolean {
    const seenAtMs = this.#seen.get(wireId);
    return seenAtMs !== undefined && this.#scheduler.nowMs - seenAtMs < DEDUPE_WINDOW_MS;
  }

  /** @param wireId the id that is remembered: another one than the message's where it is stored again */
  append(messageId: string, body: string, wireId: string): void {
    const { nowMs } = this.#scheduler;
    if (this.has(wireId)) return;
    this.#seen.set(wireId, nowMs);
    this.records.push({ messageId, body, storedAtMs: nowMs, state: 'ready', timer: null });
    for (const { generationId, reserved } of [JSON.parse(body) as UsageRecord | UsageRecord[]].flat()) {
      if (!this.stored.has(generationId)) this.stored.set(generationId, { atMs: nowMs, isReserved: reserved });
    }
  }

  /** Consumers that can get a batch now. */
  dispatches(): UsageConsumer[] {
    if (!this.records.some(({ state }) => state === 'ready')) return [];
    return this.consumers.filter(({ process, isBusy }) => process.state === 'up' && !isBusy && !this.#broker.isCutOff(process));
  }

  hand(consumer: UsageConsumer): void {
    const ready = this.records.filter(({ state }) => state === 'ready');
    const batch = ready.slice(0, Math.min(consumer.maxBatch, 1 + this.#scheduler.chance.below(ready.length)));
    for (const record of batch) {
      record.state = 'leased';
      this.#readyAfter(record, ACK_WAIT_MS);
    }
    consumer.isBusy = true;
    consumer.take(batch);
  }

  /** Also after the lease. */
  ack(batch: readonly StoredRecord[]): void {
    for (const record of batch) this.#clear(record);
    this.records = this.records.filter((record) => !batch.includes(record));
  }

  return(batch: readonly StoredRecord[], afterMs: number): void {
    for (const record of batch) if (this.records.includes(record)) this.#readyAfter(record, afterMs);
  }

  backlog(): UsageBacklog {
    return { records: this.records.length, oldestAtMs: this.records.length === 0 ? null : Math.min(...this.records.map(({ storedAtMs }) => storedAtMs)) };
  }

  forget(process: Process): void {
    this.consumers = this.consumers.filter((one) => one.process !== process);
  }

  /** @returns the generation ids of the records that were in it */
  lose(): string[] {
    const lost = this.records.flatMap(({ body }) => [JSON.parse(body) as UsageRecord | UsageRecord[]].flat().map(({ generationId }) => generationId));
    for (const record of this.records) this.#clear(record);
    this.records = [];
    this.#seen.clear();
    return lost;
  }

  /** @param forgets its deduplication window */
  restart({ forgets }: { forgets: boolean }): void {
    if (forgets) this.#seen.clear();
    for (const record of this.records) this.#makeReady(record);
  }

  #readyAfter(record: StoredRecord, afterMs: number): void {
    this.#clear(record);
    record.timer = this.#scheduler.setTimer(this.#broker.process, () => this.#makeReady(record), afterMs, null);
  }

  #makeReady(record: StoredRecord): void {
    this.#clear(record);
    if (record.state === 'leased') this.redeliveries += 1;
    record.state = 'ready';
  }

  #clear(record: StoredRecord): void {
    if (record.timer !== null) this.#scheduler.clear(record.timer);
    record.timer = null;
  }
}
