import { setTimeout as pause } from 'node:timers/promises';
import type { Bus, LogPosition, WorkKind } from '../bus.ts';

/**
 * `ordinary`: windows and limits that no case reaches; `brief`: windows that a case can wait out; `small`: a command log, a work queue and a usage log that
 * a case can fill.
 */
export type BusKind = 'ordinary' | 'brief' | 'small';

export interface BusUnderTest {
  bus: Bus;
  windows: { dedupeMs: number; replayMs: number; blobMs: number };
  /** Of the command log, of the work queue and of the usage log. */
  capacityBytes: number;
  /** Advances the driver's clock, or waits. */
  pass(ms: number): Promise<void>;
  /** Opens the same store again, as the next process would. The case has closed the bus, or left it open like a killed process. */
  reopen(): Promise<Bus>;
  /** The bus of another process; the same bus for a driver of one process. */
  another(): Promise<Bus>;
  /** Closes everything and releases the store. */
  close(): Promise<void>;
}

/** The bus of the current case. */
export type UnderTest = () => BusUnderTest;

/** For slow machines; what is awaited takes milliseconds. */
export const TIMEOUT_MS = 60_000;
const POLL_MS = 5;

/** The position before all commands. */
export const START: LogPosition = { sequence: 0, fingerprint: null };

/** Collects items, and waits for a number of them. */
export class Collector<Item> {
  readonly items: Item[] = [];
  readonly #waiting = new Set<{ count: number; resolve: (items: Item[]) => void }>();

  readonly add = (item: Item): void => {
    this.items.push(item);
    for (const wait of this.#waiting) if (this.items.length >= wait.count) wait.resolve(this.items);
  };

  /** All items, once there are at least `count`. @throws on a timeout */
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

export function gate(): { opened: Promise<void>; open(): void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

/** Polls until the value matches. @throws on a timeout */
export async function eventually<Value>(look: () => Promise<Value>, fits: (value: Value) => boolean): Promise<Value> {
  const until = performance.now() + TIMEOUT_MS;
  for (;;) {
    const value = await look();
    if (fits(value)) return value;
    if (performance.now() > until) throw new Error(`not so within ${TIMEOUT_MS} ms: ${JSON.stringify(value)?.slice(0, 200)}`);
    await pause(POLL_MS);
  }
}

/** Of all kinds. A count that takes a busy broker more than a second is refused: it is asked for again. */
export async function depthsOf({ work }: Bus): Promise<Record<WorkKind, number>> {
  const found = await eventually(
    () => work.depths().catch(() => null),
    (depths) => depths !== null,
  );
  if (found === null) throw new TypeError('there is no count');
  return found;
}
