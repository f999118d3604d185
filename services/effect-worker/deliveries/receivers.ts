import type { Clock } from '#shared/clock.ts';
import { Slots } from '../tools/slots.ts';
import { ReceiverBreaker } from './receiver-breaker.ts';

/** Posts to one host at once. */
const MAX_POSTS = 16;
/** Deliveries that wait for one of them in this worker. Together they hold a third of its items at most (`service.ts`). */
const MAX_WAITING = 64;
/** Hosts whose state is kept; the one used longest ago goes first. */
const MAX_RECEIVERS = 1_024;

/** One host that callbacks are posted to. */
export interface Receiver {
  /** `host:port`; it names the receiver in logs, as a path may hold a secret. */
  name: string;
  slots: Slots;
  breaker: ReceiverBreaker;
  /** Whether as many deliveries wait here as may. */
  isFull(): boolean;
}

/** The receivers that this worker posts to, each with its share of the slots and a circuit breaker. */
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

/** What is no address is refused before anything is sent, so one entry stands for all of them. */
function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : '';
}
