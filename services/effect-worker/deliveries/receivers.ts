import { LRUCache } from 'lru-cache';
import type { Clock } from '#shared/clock.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { Slots } from '../tools/slots.ts';
import type { Attempt } from './post-once.ts';
import { type Pass, ReceiverBreaker } from './receiver-breaker.ts';

/** Posts in flight and waiting, per host. Both kinds together leave a fifth of the worker's items (`delivery-kind.ts`) to other hosts. */
export interface ReceiverLimits {
  posts: number;
  waiting: number;
}
export const CALLBACK_LIMITS: ReceiverLimits = { posts: 16, waiting: 64 };
export const EVENT_LIMITS: ReceiverLimits = { posts: 32, waiting: 96 };
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
  readonly #limits: ReceiverLimits;
  readonly #receivers = new LRUCache<string, Receiver>({ max: MAX_RECEIVERS });

  constructor(clock: Clock, limits: ReceiverLimits = CALLBACK_LIMITS) {
    this.#clock = clock;
    this.#limits = limits;
  }

  of(url: string): Receiver {
    const name = hostOf(url);
    const slots = new Slots(this.#limits.posts);
    const receiver = this.#receivers.get(name) ?? {
      name,
      slots,
      breaker: new ReceiverBreaker(this.#clock),
      isFull: () => slots.waiting >= this.#limits.waiting,
    };
    this.#receivers.set(name, receiver);
    return receiver;
  }
}

/** After a post. @param outcome null: nothing was posted, or it was given up */
export function leaveBreaker({ breaker, name }: Receiver, pass: Pass, outcome: Attempt | null, log: Log): void {
  const isAnswered = outcome !== null && (outcome.delivered || outcome.status !== null);
  const isSilent = outcome !== null && !outcome.delivered && outcome.isSilent;
  const change = breaker.leave(isAnswered ? 'answered' : isSilent ? 'silent' : 'unknown', pass);
  if (change === 'opened') log.warn({ receiver: name }, 'the circuit breaker of a receiver is open: what is posted to it waits until it responds');
  if (change === 'closed') log.info({ receiver: name }, 'the circuit breaker of a receiver is closed: it responds again');
}

/** Invalid URLs share one entry: they are refused before anything is sent. */
function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : '';
}
