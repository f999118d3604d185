import type { NoticeBoard } from '../bus.ts';
import { PubSub } from './pub-sub.ts';
import type { Closable, ComponentDeps } from './types.ts';

/** Notices in process. After the end `publish` does nothing: a notice may be lost at any moment. */
export function openNoticeBoard({ log }: ComponentDeps): NoticeBoard & Closable {
  const board = new PubSub<string>(log);
  return {
    publish: (subject, body) => board.publish(subject, body),
    subscribe: (pattern, handler) => board.subscribe(pattern, handler),
    // Handlers are synchronous, so none is ever in hand between two turns; handlers of work may still publish.
    stopReaders: async () => {},
    shut: async () => board.close(),
  };
}
