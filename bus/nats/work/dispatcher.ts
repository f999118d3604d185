import { createInbox, type Msg } from '@nats-io/transport-node';
import type { Clock } from '#shared/clock.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { DispatchedKind, Subscription, WorkKind } from '../../bus.ts';
import { maxDispatchBytes } from '../../dispatch-limits.ts';
import { assertDispatchable, DispatchReports } from '../../dispatch-reports.ts';
import { addresses, isToken, subjectOf } from '../../subjects.ts';
import { BoundedPublisher } from '../connection/bounded-publisher.ts';
import type { NatsLink } from '../connection/link.ts';
import { DispatchPermission } from './dispatch-permission.ts';

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
  link: Pick<NatsLink, 'main' | 'isUp' | 'inboxPrefix' | 'sessionNumber' | 'onPermissionViolation'>;
  clock: Clock;
  log: Log;
}

/**
 * Dispatches items over core NATS to the kind's queue group, without a reply. The reply subject carries this publisher's id, send time and message id, and receives
 * only the broker's no-responders status. A worker that stores an item reports it on a subject of its own, since it may not publish to inboxes.
 */
export class Dispatcher {
  readonly #publisher: BoundedPublisher;
  readonly #clock: Clock;
  readonly #link: DispatcherDeps['link'];
  readonly #inbox: string;
  /** One token. */
  readonly #publisherId: string;
  readonly #refusals = new DispatchReports();
  readonly #stored = new DispatchReports();
  #isSubscribed = false;
  readonly #permissions: Record<DispatchedKind, DispatchPermission>;
  readonly #maxPayload: () => number;

  constructor({ link, clock, log }: DispatcherDeps) {
    this.#maxPayload = () => link.main.info?.max_payload ?? DEFAULT_MAX_PAYLOAD;
    this.#publisher = new BoundedPublisher(link.main, () => link.isUp, log, this.#maxPayload);
    this.#clock = clock;
    this.#link = link;
    this.#inbox = createInbox(link.inboxPrefix);
    this.#publisherId = this.#inbox.slice(this.#inbox.lastIndexOf('.') + 1);
    const permission = (kind: DispatchedKind) => new DispatchPermission(link, subjects[kind], (messageId) => this.#refusals.notify(messageId));
    this.#permissions = { 'router.call': permission('router.call'), 'router.turn': permission('router.turn') };
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
    const permission = this.#permissions[kind];
    if (!permission.isDenied && this.#publisher.publish(subjects[kind], body, { reply })) permission.onPublished(messageId);
    // Asynchronous as with the broker: the caller is not done yet.
    else setImmediate(() => this.#refusals.notify(messageId));
  }

  onRefused(handler: (messageId: string) => void): Subscription {
    return this.#refusals.subscribe(handler);
  }

  /** Subscribes at the broker with the first handler: not each user of a broker may. */
  onStored(handler: (messageId: string) => void): Subscription {
    if (!this.#isSubscribed) {
      this.#isSubscribed = true;
      this.#link.main.subscribe(subjectOf(addresses.storedDispatches, this.#publisherId), {
        callback: (error, message) => {
          if (error === null) this.#stored.notify(message.string());
        },
      });
    }
    return this.#stored.subscribe(handler);
  }

  /** A consumer of this process has stored an item. @param publisher null: it was dispatched here */
  reportStored(publisher: string | null, messageId: string): void {
    if (publisher === null) this.#stored.notify(messageId);
    else if (this.#link.isUp) this.#link.main.publish(subjectOf(addresses.storedDispatches, publisher), messageId);
  }
}

interface ReadDispatch {
  messageId: string;
  /** One token. */
  publisher: string;
  publishedAtMs: number;
}

/** Parses a dispatch's reply subject; null for any other. */
export function readDispatch(reply: Msg['reply'] = ''): ReadDispatch | null {
  const idAt = reply.lastIndexOf('.') + 1;
  const sentAt = reply.lastIndexOf('.', idAt - 2) + 1;
  const publisher = reply.slice(reply.lastIndexOf('.', sentAt - 2) + 1, Math.max(0, sentAt - 1));
  const messageId = reply.slice(idAt);
  const publishedAtMs = Number(reply.slice(sentAt, idAt - 1));
  if (idAt === 0 || !isToken(messageId) || !isToken(publisher) || !Number.isSafeInteger(publishedAtMs)) return null;
  return { messageId, publisher, publishedAtMs };
}
