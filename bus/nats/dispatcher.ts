import { createInbox, type Msg } from '@nats-io/transport-node';
import type { Clock } from '#shared/clock.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { DispatchedKind, Subscription, WorkKind } from '../bus.ts';
import { assertDispatchable, Refusals } from '../refusals.ts';
import { addresses, isToken } from '../subjects.ts';
import { BoundedPublisher } from './bounded-publisher.ts';
import type { NatsLink } from './link.ts';

/** Where items of a kind are offered. */
const subjects: Record<DispatchedKind, string> = { 'router.call': addresses.dispatchedCalls.pattern };

/** The subject at which items of a kind are offered; null when they are not. */
export function dispatchSubjectOf(kind: WorkKind): string | null {
  return kind in subjects ? subjects[kind as DispatchedKind] : null;
}

interface DispatcherDeps {
  link: Pick<NatsLink, 'main' | 'isUp' | 'inboxPrefix'>;
  clock: Clock;
  log: Log;
}

/**
 * Offers items as plain messages to the consumers of their kind, of which the broker picks one. Nothing is waited for: the message says
 * where to tell that nobody is there, which the broker does by itself, and in the same place when it was sent and which item it is.
 */
export class Dispatcher {
  readonly #publisher: BoundedPublisher;
  readonly #clock: Clock;
  readonly #inbox: string;
  readonly #refusals = new Refusals();

  constructor({ link, clock, log }: DispatcherDeps) {
    this.#publisher = new BoundedPublisher(link.main, () => link.isUp, log);
    this.#clock = clock;
    this.#inbox = createInbox(link.inboxPrefix);
    // Only the broker speaks there: whoever has an item says nothing.
    link.main.subscribe(`${this.#inbox}.>`, {
      callback: (error, { subject }) => {
        if (error === null) this.#refusals.notify(readDispatch(subject)?.messageId ?? '');
      },
    });
  }

  /** @throws `bus.invalid_subject` */
  dispatch(kind: DispatchedKind, messageId: string, body: string): void {
    assertDispatchable(messageId);
    const reply = `${this.#inbox}.${this.#clock.nowMs()}.${messageId}`;
    // Told later, as the broker would: whoever offers is not done yet.
    if (!this.#publisher.publish(subjects[kind], Buffer.from(body), { reply })) setImmediate(() => this.#refusals.notify(messageId));
  }

  onRefused(handler: (messageId: string) => void): Subscription {
    return this.#refusals.subscribe(handler);
  }
}

/** Which item was offered and when, by the subject at which its publisher listens; null when it says neither. */
export function readDispatch(reply: Msg['reply'] = ''): { messageId: string; publishedAtMs: number } | null {
  const [sentAtMs, messageId] = reply.split('.').slice(-2);
  const publishedAtMs = Number(sentAtMs);
  return messageId === undefined || !isToken(messageId) || !Number.isSafeInteger(publishedAtMs) ? null : { messageId, publishedAtMs };
}
