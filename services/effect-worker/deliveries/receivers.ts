import { LRUCache } from 'lru-cache';
import type { Clock } from '#shared/clock.ts';
import { Slots } from '../tools/slots.ts';
import { ReceiverBreaker } from './receiver-breaker.ts';

/** Posts in flight per host. */
const MAX_POSTS = 16;
/** Per host. With the posts they use at most a third of the worker's items (`service.ts`). */
const MAX_WAITING = 64;
/** The least recently used is dropped. */
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
  readonly #receivers = new LRUCache<string, Receiver>({ max: MAX_RECEIVERS });

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
    this.#receivers.set(name, receiver);
    return receiver;
  }
}

/** Invalid URLs share one entry: they are refused before anything is sent. */
function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : '';
}
