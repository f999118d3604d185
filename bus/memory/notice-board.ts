import type { NoticeBoard } from '../bus.ts';
import { PubSub } from './pub-sub.ts';
import type { Closable, ComponentDeps } from './types.ts';

/** In-process notices. After `shut`, `publish` does nothing. */
export function openNoticeBoard({ log }: ComponentDeps): NoticeBoard & Closable {
  const board = new PubSub<string>(log);
  return {
    publish: (subject, body) => board.publish(subject, body),
    subscribe: (pattern, handler) => board.subscribe(pattern, handler),
    // Handlers are synchronous, so none is running here.
    stopReaders: async () => {},
    shut: async () => board.close(),
  };
}
