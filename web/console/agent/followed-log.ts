import type { AgentClient } from '#client/agent-client.ts';
import type { AgentEvent } from '#client/api.ts';
import { breather } from '../../breathe.ts';
import { whileShown } from '../../while-shown.ts';
import { errorOf } from '../error-of.ts';
import { PagedList } from '../paged-list.ts';

export interface FollowedLog {
  list: PagedList<AgentEvent>;
  /** What ended it; null: nothing. */
  failure: Error | null;
  stop(): void;
}

/** The events of a session from an offset on, each once, in order, while the page is shown. */
export function follow(client: AgentClient, sessionId: string, from: number): FollowedLog {
  const controller = new AbortController();
  const list = new PagedList<AgentEvent>(
    ({ offset }) => String(offset),
    async () => ({ items: [], next_cursor: null }),
  );
  const log: FollowedLog = { list, failure: null, stop: () => controller.abort() };
  const breathe = breather();
  let after = from - 1;
  const read = async (signal: AbortSignal) => {
    for await (const item of client.events.follow(sessionId, { after, signal })) {
      if (item.type === 'event') {
        after = item.event.offset;
        list.append(item.event);
      }
      await breathe();
    }
  };
  const readShown = async () => {
    try {
      await whileShown(read, controller.signal);
    } catch (error) {
      log.failure = errorOf(error);
      list.changes.emit();
    }
  };
  void readShown();
  return log;
}
