import type { Clock } from '#shared/clock.ts';
import { Slots } from '../tools/slots.ts';
import { ReceiverBreaker } from './receiver-breaker.ts';

/** Posts in flight per host. */
const MAX_POSTS = 16;
/** Per host. With the posts they use at most a third of the worker's items (`service.ts`). */
const MAX_WAITING = 64;
/** LRU bound. */
const MAX_RECEIVERS = 1_024;

export interface Receiver {
  /** `host:port`, for logs: a path may hold a secret. */
  name: string;
  slots: Slots;
  breaker: ReceiverBreaker;
  isFull(): boolean;
}

/** Receivers with their slots and circuit breakers. */
export class Receivers {
  readonly #clock: Clock;
  readonly #receivers = new Map<string, Receiver>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  of(url: string): Receiver {
    const name = hostOf(url);
    const slots = new Slots(MAX_POSTS);
    const receiver = this.#receivers.get(name) ?? {
      name,
      slots,
      breaker: new ReceiverBreaker(this.#clock),
      isFull: () => slots.waiting >= MAX_WAITING,
    };
    this.#receivers.delete(name);
    this.#receivers.set(name, receiver);
    const [oldest] = this.#receivers.keys();
    if (oldest !== undefined && this.#receivers.size > MAX_RECEIVERS) this.#receivers.delete(oldest);
    return receiver;
  }
}

/** Invalid URLs share one entry: they are refused before anything is sent. */
function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : '';
}
