import { LRUCache } from 'lru-cache';
import type { Clock } from '#shared/clock.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { Slots } from '../tools/slots.ts';
import type { Attempt } from './post-once.ts';
import { type Pass, ReceiverBreaker } from './receiver-breaker.ts';

/** Posts in flight and waiting, per host. */
export interface ReceiverLimits {
  posts: number;
  waiting: number;
}
export const CALLBACK_LIMITS: ReceiverLimits = { posts: 16, waiting: 64 };
export const EVENT_LIMITS: ReceiverLimits = { posts: 32, waiting: 96 };
/** The least recently used is dropped. */
const MAX_RECEIVERS = 1_024;

/** Callbacks and events of one worker that are being posted or wait for a slot of their receiver, over all receivers. */
export class HeldDeliveries {
  readonly #most: number;
  #count = 0;

  /** @param most deliveries that the worker executes at once */
  constructor(most: number) {
    this.#most = most;
  }

  /**
   * Whether a receiver holds its share: as many as are free (a dynamic threshold). One alone gets half, each of two a third, and so on, so that a receiver
   * without any always finds room, however many others are slow.
   */
  isShareOf(own: number): boolean {
    return own > 0 && own >= this.#most - this.#count;
  }

  enter(): void {
    this.#count += 1;
  }

  leave(): void {
    this.#count -= 1;
  }
}

/** A host, with its slots. */
export class Receiver {
  /** `host:port`, for logs: a path may hold a secret. */
  readonly name: string;
  readonly breaker: ReceiverBreaker;
  readonly #slots: Slots;
  readonly #mostWaiting: number;
  readonly #held: HeldDeliveries;
  #own = 0;

  constructor(name: string, breaker: ReceiverBreaker, { posts, waiting }: ReceiverLimits, held: HeldDeliveries) {
    this.name = name;
    this.breaker = breaker;
    this.#slots = new Slots(posts);
    this.#mostWaiting = waiting;
    this.#held = held;
  }

  /** Whether nothing more may wait for it now. What is overdue may, within the receiver's share of the worker. */
  isFull(isOverdue: boolean): boolean {
    return (!isOverdue && this.#slots.waiting >= this.#mostWaiting) || this.#held.isShareOf(this.#own);
  }

  /** @throws ToolFailure `stopped` when the signal is aborted before a slot is free */
  async withSlot<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    this.#own += 1;
    this.#held.enter();
    try {
      return await this.#slots.withSlot(signal, work); // no fail point: inside
    } finally {
      this.#own -= 1;
      this.#held.leave();
    }
  }
}

/** Receivers with their slots and circuit breakers. */
export class Receivers {
  readonly #clock: Clock;
  readonly #limits: ReceiverLimits;
  readonly #held: HeldDeliveries;
  readonly #receivers = new LRUCache<string, Receiver>({ max: MAX_RECEIVERS });

  constructor(clock: Clock, limits: ReceiverLimits, held: HeldDeliveries) {
    this.#clock = clock;
    this.#limits = limits;
    this.#held = held;
  }

  of(url: string): Receiver {
    const name = hostOf(url);
    const receiver = this.#receivers.get(name) ?? new Receiver(name, new ReceiverBreaker(this.#clock), this.#limits, this.#held);
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
