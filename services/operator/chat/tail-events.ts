import type { AgentClient } from '#client/agent-client.ts';
import type { AgentEvent } from '#client/api.ts';
import { printable } from '../commands/dependencies.ts';

const PAGE_EVENTS = 200;

interface TailOptions {
  sessionId: string;
  /** Offset; -1: from the first event on. */
  after: number;
  /** Ends behind what is in the log now. */
  once: boolean;
  json: boolean;
}

/** Prints a line for each event. @throws AgentError */
export async function tailEvents(
  { sessionId, after, once, json }: TailOptions,
  { client, print, note }: { client: AgentClient; print(line: string): void; note(text: string): void },
): Promise<void> {
  const printEvent = (event: AgentEvent) => print(json ? JSON.stringify(event) : eventLine(event));
  if (!once) {
    // Following goes on without end while there is no answer: an address without a server is reported at once.
    await client.sessions.get(sessionId);
    for await (const item of client.events.follow(sessionId, { after })) {
      if (item.type === 'event') printEvent(item.event);
      else if (item.type === 'connection' && item.error !== null) note(`(connection lost: ${printable(item.error.message)}; trying again)\n`);
    }
    return;
  }
  for (let last = after; ; ) {
    const events = await client.events.list(sessionId, { min_offset: last + 1, limit: PAGE_EVENTS });
    for (const event of events) printEvent(event);
    if (events.length === 0) return;
    last = events.at(-1)?.offset ?? last;
  }
}

function eventLine(event: AgentEvent): string {
  return [String(event.offset).padStart(5), event.created_at, event.source, printable(event.kind), printable(contentOf(event))].join('  ').trimEnd();
}

function contentOf(event: AgentEvent): string {
  switch (event.kind) {
    case 'user_message':
    case 'preamble':
    case 'assistant_message':
      return event.text;
    case 'status':
      return [event.status, event.stage, event.error_detail].filter((part) => typeof part === 'string').join(': ');
    case 'tool':
      return event.tool_calls.map(({ tool_id, arguments: given }) => `${tool_id}(${JSON.stringify(given)})`).join(', ');
    default:
      return '';
  }
}
