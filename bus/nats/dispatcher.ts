import { createInbox, type Msg } from '@nats-io/transport-node';
import type { Clock } from '#shared/clock.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { OfferedKind, Subscription, WorkKind } from '../bus.ts';
import { assertOfferable, Refusals } from '../refusals.ts';
import { addresses, isToken } from '../subjects.ts';
import { Outflow } from './bounded-publisher.ts';
import type { NatsLink } from './link.ts';

/** Where items of a kind are offered. */
const subjects: Record<OfferedKind, string> = { 'router.call': addresses.offeredCalls.pattern };

/** The subject at which items of a kind are offered; null when they are not. */
export function offersOf(kind: WorkKind): string | null {
  return kind in subjects ? subjects[kind as OfferedKind] : null;
}

interface OffersDeps {
  link: Pick<NatsLink, 'main' | 'isUp' | 'inboxPrefix'>;
  clock: Clock;
  log: Log;
}

/**
 * Offers items as plain messages to the consumers of their kind, of which the broker picks one. Nothing is waited for: the message says
 * where to tell that nobody is there, which the broker does by itself, and in the same place when it was sent and which item it is.
 */
export class Offers {
  readonly #outflow: Outflow;
  readonly #clock: Clock;
  readonly #inbox: string;
  readonly #refusals = new Refusals();

  constructor({ link, clock, log }: OffersDeps) {
    this.#outflow = new Outflow(link.main, () => link.isUp, log);
    this.#clock = clock;
    this.#inbox = createInbox(link.inboxPrefix);
    // Only the broker speaks there: whoever has an item says nothing.
    link.main.subscribe(`${this.#inbox}.>`, {
      callback: (error, { subject }) => {
        if (error === null) this.#refusals.tell(readOffer(subject)?.messageId ?? '');
      },
    });
  }

  /** @throws `bus.invalid_subject` */
  offer(kind: OfferedKind, messageId: string, body: string): void {
    assertOfferable(messageId);
    const reply = `${this.#inbox}.${this.#clock.nowMs()}.${messageId}`;
    // Told later, as the broker would: whoever offers is not done yet.
    if (!this.#outflow.publish(subjects[kind], Buffer.from(body), { reply })) setImmediate(() => this.#refusals.tell(messageId));
  }

  onRefused(handler: (messageId: string) => void): Subscription {
    return this.#refusals.subscribe(handler);
  }
}

/** Which item was offered and when, by the subject at which its publisher listens; null when it says neither. */
export function readOffer(reply: Msg['reply'] = ''): { messageId: string; publishedAtMs: number } | null {
  const [sentAtMs, messageId] = reply.split('.').slice(-2);
  const publishedAtMs = Number(sentAtMs);
  return messageId === undefined || !isToken(messageId) || !Number.isSafeInteger(publishedAtMs) ? null : { messageId, publishedAtMs };
}
