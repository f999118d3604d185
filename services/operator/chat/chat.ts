import type { AgentClient } from '#client/agent-client.ts';
import type { FollowItem } from '#client/follow-item.ts';
import { ReplyPrinter } from './reply-printer.ts';

interface ChatOptions {
  /** Null: a new one. */
  sessionId: string | null;
  /** Messages; empty ones are passed over. */
  lines: AsyncIterable<string> | Iterable<string>;
  json: boolean;
}

interface ChatDeps {
  client: AgentClient;
  print(line: string): void;
  write(text: string): void;
}

/**
 * Sends each line as a message, and prints what comes until the agent is ready again. In a session in manual mode no turn follows, so nothing is awaited.
 *
 * @throws AgentError
 */
export async function chat({ sessionId, lines, json }: ChatOptions, { client, print, write }: ChatDeps): Promise<void> {
  // Without a key it is not repeated: an address without a server is reported at once.
  const session = sessionId === null ? await client.request('POST', '/sessions', { body: {} }) : await client.sessions.get(sessionId);
  if (json) print(JSON.stringify({ type: 'session', session_id: session.id }));
  else print(`Session ${session.id}${session.mode === 'manual' ? ', in manual mode: messages begin no turn' : ''}`);
  const printer = new ReplyPrinter(write);
  const leaving = new AbortController();
  const turns = new Turns(session.last_offset);
  const following = (async () => {
    for await (const item of client.events.follow(session.id, { after: session.last_offset, signal: leaving.signal })) {
      if (!json) printer.take(item);
      else if (item.type !== 'connection') print(JSON.stringify(item));
      turns.take(item);
    }
  })().catch((error: unknown) => turns.fail(error));
  try {
    for await (const line of lines) {
      if (line.trim() === '') continue;
      const since = turns.offset;
      const { event } = await client.messages.send(session.id, line);
      if (session.mode !== 'manual') await turns.readyAfter(event?.offset ?? since + 1);
    }
  } finally {
    leaving.abort();
    await following;
  }
}

/** What the log says of turns. */
class Turns {
  offset: number;
  #readyAt = -1;
  #waiting: { after: number; resolve(): void; reject(error: unknown): void } | null = null;
  #failure: { error: unknown } | null = null;

  constructor(offset: number) {
    this.offset = offset;
  }

  take(item: FollowItem): void {
    if (item.type !== 'event') return;
    const { event } = item;
    this.offset = event.offset;
    if (event.kind !== 'status' || event.source !== 'ai_agent' || event.status !== 'ready') return;
    this.#readyAt = event.offset;
    if (this.#waiting !== null && this.#readyAt > this.#waiting.after) this.#waiting.resolve();
  }

  fail(error: unknown): void {
    this.#failure = { error };
    this.#waiting?.reject(error);
  }

  /** @param offset of the message */
  readyAfter(offset: number): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== null) reject(this.#failure.error);
      else if (this.#readyAt > offset) resolve();
      else this.#waiting = { after: offset, resolve, reject };
    });
  }
}
