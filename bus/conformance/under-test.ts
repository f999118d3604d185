import { setTimeout as pause } from 'node:timers/promises';
import type { Bus, LogPosition } from '../bus.ts';

/**
 * What a case needs of its bus. `ordinary`: windows and limits that no case reaches; `brief`: windows that a case can wait out;
 * `small`: a command log and a work queue that a case can fill.
 */
export type BusKind = 'ordinary' | 'brief' | 'small';

export interface BusUnderTest {
  bus: Bus;
  /** How long things are remembered or kept. */
  windows: { dedupeMs: number; replayMs: number; blobMs: number };
  /** What the command log holds, and the work queue, each for itself. */
  capacityBytes: number;
  /** Lets so much time pass for the driver: a clock is set forward, or it is waited for. */
  pass(ms: number): Promise<void>;
  /** Opens the same store once more, as the next process would. The case has closed the bus before it, or has left it as if its process had died. */
  reopen(): Promise<Bus>;
  /** What another process has, beside this one: the same bus again where there is but one process. */
  another(): Promise<Bus>;
  /** Closes whatever is open still and frees the store. */
  close(): Promise<void>;
}

/** The bus of the case at hand: opened anew for each. */
export type UnderTest = () => BusUnderTest;

/** Long enough for a slow machine; what is awaited takes milliseconds. */
export const TIMEOUT_MS = 20_000;
const LOOK_EVERY_MS = 5;

/** The place before all commands. */
export const START: LogPosition = { sequence: 0, fingerprint: null };

/** Things that arrive one by one, and the wait for a number of them. */
export class Collector<Item> {
  readonly items: Item[] = [];
  readonly #waiting = new Set<{ count: number; resolve: (items: Item[]) => void }>();

  readonly add = (item: Item): void => {
    this.items.push(item);
    for (const wait of this.#waiting) if (this.items.length >= wait.count) wait.resolve(this.items);
  };

  /** All that has come, once that is at least `count`. @throws when it takes too long */
  atLeast(count: number): Promise<Item[]> {
    if (this.items.length >= count) return Promise.resolve(this.items);
    return new Promise((resolve, reject) => {
      const late = () => reject(new Error(`${this.items.length} of ${count} arrived within ${TIMEOUT_MS} ms`));
      const timer = setTimeout(late, TIMEOUT_MS);
      const wait = {
        count,
        resolve: (items: Item[]) => {
          clearTimeout(timer);
          this.#waiting.delete(wait);
          resolve(items);
        },
      };
      this.#waiting.add(wait);
    });
  }
}

/** A promise and what opens it. */
export function gate(): { opened: Promise<void>; open(): void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

/** Looks again and again until the value fits. @throws when it takes too long */
export async function eventually<Value>(look: () => Promise<Value>, fits: (value: Value) => boolean): Promise<Value> {
  const until = performance.now() + TIMEOUT_MS;
  for (;;) {
    const value = await look();
    if (fits(value)) return value;
    if (performance.now() > until) throw new Error(`not so within ${TIMEOUT_MS} ms: ${JSON.stringify(value)?.slice(0, 200)}`);
    await pause(LOOK_EVERY_MS);
  }
}
