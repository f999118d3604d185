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

export type ArmedTimer = DueTimer & { dueAtMs: number };

/** setTimeout's maximum; later timers are checked again then. */
const LONGEST_WAIT_MS = 2_147_483_647;

/**
 * Fires the timers of this host's partitions. The rows are authoritative, and for a derived timer its open effect is: a due timer fires once, and the
 * commit of its command deletes its row, or closes the effect.
 */
export class Timers {
  readonly #clock: Clock;
  readonly #onDue: (due: DueTimer[]) => void;
  readonly #retrySuffix: string;
  #armed = new ObjectMap<ArmedTimer>();
  /** Due retries without a committed command, with their partitions. */
  readonly #dueRetries = new Map<string, number>();
  #alarm: NodeJS.Timeout | null = null;
  #alarmAtMs = Number.POSITIVE_INFINITY;

  /** @param retrySuffix of the keys of timers that try again what no open effect waits for */
  constructor(clock: Clock, onDue: (due: DueTimer[]) => void, retrySuffix: string) {
    this.#clock = clock;
    this.#onDue = onDue;
    this.#retrySuffix = retrySuffix;
  }

  /** @param derived of open effects, without a row; a row of the same key counts in its place */
  async load(store: TimerStore, partitions: readonly number[], derived: readonly ArmedTimer[]): Promise<void> {
    const stored = await store.of(partitions);
    failPoint('take-over.timers-read');
    for (const timer of [...derived, ...stored]) this.arm(timer);
  }

  arm(timer: ArmedTimer): void {
    this.#armed.set(timer.key, timer);
    if (timer.dueAtMs < this.#alarmAtMs) this.#setAlarm(timer.dueAtMs);
  }

  disarm(key: string): void {
    // The alarm stays: a needless one costs less than finding the next at each disarm.
    this.#armed.delete(key);
    this.#dueRetries.delete(key);
  }

  forget(partition: number): void {
    for (const timer of this.#armed.values()) if (timer.partition === partition) this.#armed.delete(timer.key);
    for (const [key, owner] of this.#dueRetries) if (owner === partition) this.#dueRetries.delete(key);
  }

  /**
   * Retries without an open effect, and how many of them are due by then. A due one counts until the commit that opens its effect, so
   * that it is always counted here or there.
   */
  waitingRetries(untilMs: number): { all: number; due: number } {
    let [all, due] = [this.#dueRetries.size, this.#dueRetries.size];
    for (const { key, dueAtMs } of this.#armed.values()) {
      if (!key.endsWith(this.#retrySuffix)) continue;
      all += 1;
      if (dueAtMs <= untilMs) due += 1;
    }
    return { all, due };
  }

  stop(): void {
    if (this.#alarm !== null) clearTimeout(this.#alarm);
    this.#alarm = null;
    this.#armed = new ObjectMap();
    this.#dueRetries.clear();
  }

  #setAlarm(atMs: number): void {
    if (this.#alarm !== null) clearTimeout(this.#alarm);
    this.#alarmAtMs = atMs;
    const waitMs = Math.min(Math.max(0, atMs - this.#clock.nowMs()), LONGEST_WAIT_MS);
    // Behind the sockets: a process that was paused may not have read the result that came before the timer was due.
    this.#alarm = setTimeout(() => setImmediate(() => this.#ring()), waitMs);
  }

  #ring(): void {
    // One that was set meanwhile is for what is due by now, or set again below.
    if (this.#alarm !== null) clearTimeout(this.#alarm);
    this.#alarm = null;
    this.#alarmAtMs = Number.POSITIVE_INFINITY;
    const nowMs = this.#clock.nowMs();
    const due: DueTimer[] = [];
    let nextAtMs = Number.POSITIVE_INFINITY;
    for (const { partition, key, command, dueAtMs } of this.#armed.values()) {
      if (dueAtMs <= nowMs) {
        this.#armed.delete(key);
        if (key.endsWith(this.#retrySuffix)) this.#dueRetries.set(key, partition);
        due.push({ partition, key, command });
      } else nextAtMs = Math.min(nextAtMs, dueAtMs);
    }
    if (nextAtMs !== Number.POSITIVE_INFINITY) this.#setAlarm(nextAtMs);
    if (due.length > 0) this.#onDue(due);
  }
}
