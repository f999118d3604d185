import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { until } from './until.ts';

/** An SSE client, like a browser's EventSource, that collects its events. */
export interface EventClient {
  status: number;
  headers: Headers;
  events: EventSourceMessage[];
  comments: string[];
  /** Whether the server has ended the stream. */
  readonly isEnded: boolean;
  waitFor(what: string, condition: () => boolean): Promise<unknown>;
  close(): void;
}

export async function openEvents(url: string, headers: Record<string, string>): Promise<EventClient> {
  const leaving = new AbortController();
  const response = await fetch(url, { headers: { accept: 'text/event-stream', ...headers }, signal: leaving.signal });
  const events: EventSourceMessage[] = [];
  const comments: string[] = [];
  let isEnded = false;
  const parser = createParser({ onEvent: (event) => events.push(event), onComment: (comment) => comments.push(comment) });
  const follow = async () => {
    const decoder = new TextDecoder();
    for await (const bytes of response.body ?? []) parser.feed(decoder.decode(bytes, { stream: true }));
  };
  follow()
    .catch(() => {}) // broken off by either side
    .finally(() => {
      isEnded = true;
    });
  return {
    status: response.status,
    headers: response.headers,
    events,
    comments,
    get isEnded() {
      return isEnded;
    },
    waitFor: (what, condition) => until(condition, what),
    close: () => leaving.abort(),
  };
}
