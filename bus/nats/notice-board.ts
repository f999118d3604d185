import type { Log } from '#shared/telemetry/log.ts';
import type { NoticeBoard } from '../bus.ts';
import { Outflow } from './bounded-publisher.ts';
import { CoreSubscriptions } from './core-subscriptions.ts';
import type { NatsLink } from './link.ts';

/** Notices as plain messages of the broker. What is published while it is away is lost. */
export function natsNoticeBoard(link: NatsLink, log: Log): NoticeBoard & { close(): void } {
  const outflow = new Outflow(link.main, () => link.isUp, log);
  const subscriptions = new CoreSubscriptions(link.main, log);
  return {
    publish: (subject, body) => outflow.publish(subject, Buffer.from(body)),
    subscribe: (pattern, handler) => subscriptions.subscribe(pattern, (message) => handler(message.subject, message.string())),
    close: () => subscriptions.close(),
  };
}
