import type { AgentClient } from '#client/agent-client.ts';
import type { AgentEvent } from '#client/api.ts';
import { breather } from '../../breathe.ts';
import { errorOf } from '../error-of.ts';
import { PagedList } from '../paged-list.ts';

export interface FollowedLog {
  list: PagedList<AgentEvent>;
  /** What ended it; null: nothing. */
  failure: Error | null;
  stop(): void;
}

/** The events of a session from an offset on, each once, in order, for as long as it is followed. */
export function follow(client: AgentClient, sessionId: string, from: number): FollowedLog {
  const controller = new AbortController();
  const list = new PagedList<AgentEvent>(
    ({ offset }) => String(offset),
    async () => ({ items: [], next_cursor: null }),
  );
  const log: FollowedLog = { list, failure: null, stop: () => controller.abort() };
  const read = async () => {
    const breathe = breather();
    try {
      for await (const item of client.events.follow(sessionId, { after: from - 1, signal: controller.signal })) {
        if (item.type === 'event') list.append(item.event);
        await breathe();
      }
    } catch (error) {
      log.failure = errorOf(error);
      list.changes.emit();
    }
  };
  void read();
  return log;
}
