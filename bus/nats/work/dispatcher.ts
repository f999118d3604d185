import { createInbox, type Msg } from '@nats-io/transport-node';
import type { Clock } from '#shared/clock.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { DispatchedKind, Subscription, WorkKind } from '../../bus.ts';
import { maxDispatchBytes } from '../../dispatch-limits.ts';
import { assertDispatchable, Refusals } from '../../refusals.ts';
import { addresses, isToken } from '../../subjects.ts';
import { BoundedPublisher } from '../connection/bounded-publisher.ts';
import type { NatsLink } from '../connection/link.ts';

const subjects: Record<DispatchedKind, string> = {
  'router.call': addresses.dispatchedCalls.pattern,
  'router.turn': addresses.dispatchedTurns.pattern,
};

/** That of nats-server. */
const DEFAULT_MAX_PAYLOAD = 1024 * 1024;

/** Null for kinds that are not dispatched. */
export function dispatchSubjectOf(kind: WorkKind): string | null {
  return kind in subjects ? subjects[kind as DispatchedKind] : null;
}

interface DispatcherDeps {
  link: Pick<NatsLink, 'main' | 'isUp' | 'inboxPrefix'>;
  clock: Clock;
  log: Log;
}

/**
 * Dispatches items over core NATS to the kind's queue group, without a reply. The reply subject carries send time and message id, and receives only the
 * broker's no-responders status.
 */
export class Dispatcher {
  readonly #publisher: BoundedPublisher;
  readonly #clock: Clock;
  readonly #inbox: string;
  readonly #refusals = new Refusals();
  readonly #maxPayload: () => number;

  constructor({ link, clock, log }: DispatcherDeps) {
    this.#maxPayload = () => link.main.info?.max_payload ?? DEFAULT_MAX_PAYLOAD;
    this.#publisher = new BoundedPublisher(link.main, () => link.isUp, log, this.#maxPayload);
    this.#clock = clock;
    this.#inbox = createInbox(link.inboxPrefix);
    // Only the broker publishes there.
    link.main.subscribe(`${this.#inbox}.>`, {
      callback: (error, { subject }) => {
        if (error === null) this.#refusals.notify(readDispatch(subject)?.messageId ?? '');
      },
    });
  }

  /** Of a body; of another broker after a reconnect it may be another. */
  maxBytes(): number {
    return maxDispatchBytes(this.#maxPayload());
  }

  /** @throws `bus.invalid_subject` */
  dispatch(kind: DispatchedKind, messageId: string, body: Uint8Array): void {
    assertDispatchable(messageId);
    const reply = `${this.#inbox}.${this.#clock.nowMs()}.${messageId}`;
    // Asynchronous as with the broker: the caller is not done yet.
    if (!this.#publisher.publish(subjects[kind], body, { reply })) setImmediate(() => this.#refusals.notify(messageId));
  }

  onRefused(handler: (messageId: string) => void): Subscription {
    return this.#refusals.subscribe(handler);
  }
}

/** Parses a dispatch's reply subject; null for any other. */
export function readDispatch(reply: Msg['reply'] = ''): { messageId: string; publishedAtMs: number } | null {
  const idAt = reply.lastIndexOf('.') + 1;
  const sentAt = reply.lastIndexOf('.', idAt - 2) + 1;
  const messageId = reply.slice(idAt);
  const publishedAtMs = Number(reply.slice(sentAt, idAt - 1));
  return idAt === 0 || !isToken(messageId) || !Number.isSafeInteger(publishedAtMs) ? null : { messageId, publishedAtMs };
}
