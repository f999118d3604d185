import type { Clock } from '#shared/clock.ts';
import { failPoint } from '#shared/fail-points.ts';
import { ObjectMap } from '#shared/object-map.ts';
import type { TimerStore } from '../../store/port/timer-store.ts';

/** A due timer; its command is applied like any other. */
export interface DueTimer {
  partition: number;
  key: string;
  command: string;
}

/** Suffix of timers that open another round of a delivery. */
export const DELIVERY_DUE = '-due';

/** setTimeout's maximum; later timers are checked again then. */
const LONGEST_WAIT_MS = 2_147_483_647;

/** Fires the timers of this host's partitions. The rows are authoritative: a due timer fires once, and the commit of its command deletes its row. */
export class Timers {
  readonly #clock: Clock;
  readonly #onDue: (due: DueTimer[]) => void;
  #armed = new ObjectMap<DueTimer & { dueAtMs: number }>();
  /** Due retries of callbacks without a committed command, with their partitions. */
  readonly #dueDeliveries = new Map<string, number>();
  #alarm: NodeJS.Timeout | null = null;
  #alarmAtMs = Number.POSITIVE_INFINITY;

  constructor(clock: Clock, onDue: (due: DueTimer[]) => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  async load(store: TimerStore, partitions: readonly number[]): Promise<void> {
    const stored = await store.of(partitions);
    failPoint('take-over.timers-read');
    for (const timer of stored) this.arm(timer);
  }

  arm(timer: DueTimer & { dueAtMs: number }): void {
    this.#armed.set(timer.key, timer);
    if (timer.dueAtMs < this.#alarmAtMs) this.#setAlarm(timer.dueAtMs);
  }

  disarm(key: string): void {
    // The alarm stays: a needless one costs less than finding the next at each disarm.
    this.#armed.delete(key);
    this.#dueDeliveries.delete(key);
  }

  forget(partition: number): void {
    for (const timer of this.#armed.values()) if (timer.partition === partition) this.#armed.delete(timer.key);
    for (const [key, owner] of this.#dueDeliveries) if (owner === partition) this.#dueDeliveries.delete(key);
  }

  /**
   * Retries of callbacks without an open effect, and how many of them are due by then. A due one counts until the commit that opens its effect, so
   * that it is always counted here or there.
   */
  waitingDeliveries(untilMs: number): { all: number; due: number } {
    let [all, due] = [this.#dueDeliveries.size, this.#dueDeliveries.size];
    for (const { key, dueAtMs } of this.#armed.values()) {
      if (!key.endsWith(DELIVERY_DUE)) continue;
      all += 1;
      if (dueAtMs <= untilMs) due += 1;
    }
    return { all, due };
  }

  stop(): void {
    if (this.#alarm !== null) clearTimeout(this.#alarm);
    this.#alarm = null;
    this.#armed = new ObjectMap();
    this.#dueDeliveries.clear();
  }

  #setAlarm(atMs: number): void {
    if (this.#alarm !== null) clearTimeout(this.#alarm);
    this.#alarmAtMs = atMs;
    const waitMs = Math.min(Math.max(0, atMs - this.#clock.nowMs()), LONGEST_WAIT_MS);
    this.#alarm = setTimeout(() => this.#ring(), waitMs);
  }

  #ring(): void {
    this.#alarm = null;
    this.#alarmAtMs = Number.POSITIVE_INFINITY;
    const nowMs = this.#clock.nowMs();
    const due: DueTimer[] = [];
    let nextAtMs = Number.POSITIVE_INFINITY;
    for (const { partition, key, command, dueAtMs } of this.#armed.values()) {
      if (dueAtMs <= nowMs) {
        this.#armed.delete(key);
        if (key.endsWith(DELIVERY_DUE)) this.#dueDeliveries.set(key, partition);
        due.push({ partition, key, command });
      } else nextAtMs = Math.min(nextAtMs, dueAtMs);
    }
    if (nextAtMs !== Number.POSITIVE_INFINITY) this.#setAlarm(nextAtMs);
    if (due.length > 0) this.#onDue(due);
  }
}
