import type { Log } from '#shared/telemetry/log.ts';
import type { NoticeBoard } from '../bus.ts';
import type { PubSub } from '../pub-sub.ts';
import { BoundedPublisher } from './connection/bounded-publisher.ts';
import { CoreSubscriptions } from './connection/core-subscriptions.ts';
import type { NatsLink } from './connection/link.ts';
import { both } from './local/both.ts';

/**
 * Over core NATS: publishes are lost while the broker is away, but for those to readers in this process.
 *
 * @param local these readers, for which the broker does not send back what is published here; null: there are none
 */
export function natsNoticeBoard(link: NatsLink, local: PubSub<string> | null, log: Log): NoticeBoard & { close(): void } {
  const publisher = new BoundedPublisher(link.main, () => link.isUp, log);
  const subscriptions = new CoreSubscriptions(link.main, log);
  return {
    publish(subject, body) {
      local?.publish(subject, body);
      publisher.publish(subject, Buffer.from(body));
    },
    subscribe(pattern, handler) {
      const atBroker = subscriptions.subscribe(pattern, (message) => handler(message.subject, message.string()));
      return local === null ? atBroker : both(atBroker, local.subscribe(pattern, handler));
    },
    close() {
      subscriptions.close();
      local?.close();
    },
  };
}
