import type { NoticeBoard } from '../bus.ts';
import { PubSub } from '../pub-sub.ts';
import type { Closable, ComponentDeps } from './types.ts';

/** In-process notices. After `shut`, `publish` does nothing. */
export function openNoticeBoard({ log }: ComponentDeps): NoticeBoard & Closable {
  const pubSub = new PubSub<string>(log);
  return {
    publish: (subject, body) => pubSub.publish(subject, body),
    subscribe: (pattern, handler) => pubSub.subscribe(pattern, handler),
    // Handlers are synchronous, so none is running here.
    stopReaders: async () => {},
    shut: async () => pubSub.close(),
  };
}
