import type { Log } from '#shared/telemetry/log.ts';
import type { NoticeBoard } from '../bus.ts';
import { BoundedPublisher } from './connection/bounded-publisher.ts';
import { CoreSubscriptions } from './connection/core-subscriptions.ts';
import type { NatsLink } from './connection/link.ts';

/** Over core NATS: publishes are lost while the broker is away. */
export function natsNoticeBoard(link: NatsLink, log: Log): NoticeBoard & { close(): void } {
  const publisher = new BoundedPublisher(link.main, () => link.isUp, log);
  const subscriptions = new CoreSubscriptions(link.main, log);
  return {
    publish: (subject, body) => publisher.publish(subject, Buffer.from(body)),
    subscribe: (pattern, handler) => subscriptions.subscribe(pattern, (message) => handler(message.subject, message.string())),
    close: () => subscriptions.close(),
  };
}
