import { pause } from './abort.ts';
import { AgentError } from './agent-error.ts';
import type { AgentEvent } from './api.ts';
import { eventPolls } from './event-polls.ts';
import { eventStream } from './event-stream.ts';
import type { ConnectionItem, FollowItem } from './follow-item.ts';
import type { Connection } from './http.ts';
import { OpenReplies } from './open-replies.ts';
import { retryDelay } from './timings.ts';
import { TransportChoice } from './transport-choice.ts';

export interface FollowOptions {
  /** Offset of the last event that the reader has; -1, the default: none. */
  after?: number | undefined;
  /** Ends the iteration without an error. */
  signal?: AbortSignal | undefined;
  /** No streams: for a network that is known to hold them back. */
  onlyPolling?: boolean | undefined;
}

/**
 * The events of a session and the replies in generation, for as long as the session exists: each event once, in order, over reconnects. A reader that takes
 * its time slows the server down and loses nothing.
 *
 * @throws AgentError that repeating does not mend: 401, 403, 404 (the session was deleted), 400
 */
export async function* follow(
  connection: Connection,
  sessionId: string,
  { after = -1, signal, onlyPolling = false }: FollowOptions,
): AsyncGenerator<FollowItem> {
  const { timings } = connection;
  const replies = new OpenReplies();
  const log = new LogReader(after, replies);
  const transport = new TransportChoice(onlyPolling, timings);
  let failures = 0;
  let wasOpen = false;
  while (!signal?.aborted) {
    const kind = transport.next();
    yield connectionItem('connecting', kind);
    let openedAtMs: number | null = null;
    let error: AgentError | null = null;
    try {
      for await (const items of kind === 'stream'
        ? streamed(connection, sessionId, log, signal)
        : polled(connection, sessionId, log, transport.untilMs, signal)) {
        if (openedAtMs === null) {
          openedAtMs = performance.now();
          wasOpen = true;
          transport.onOpen(kind);
          yield connectionItem('open', kind);
        }
        for (const item of items) {
          yield item;
          // What has been processed proves the connection.
          failures = 0;
        }
      }
    } catch (cause) {
      if (signal?.aborted) return;
      if (!(cause instanceof AgentError) || isFinal(cause, wasOpen)) throw cause;
      error = cause;
    }
    if (kind === 'stream') replies.onDisconnect();
    transport.onEnd(kind, { wasOpen: openedAtMs !== null, error });
    if (kind === 'polling' && error === null) continue;
    if (openedAtMs !== null && performance.now() - openedAtMs > timings.maxRetryMs) failures = 0;
    failures += 1;
    const retryInMs = retryDelay(failures, timings, error?.retryAfterMs ?? null);
    yield connectionItem('waiting', kind, retryInMs, error);
    await pause(retryInMs, signal);
  }
}

async function* streamed(connection: Connection, sessionId: string, log: LogReader, signal: AbortSignal | undefined): AsyncGenerator<FollowItem[]> {
  for await (const item of eventStream(connection, sessionId, log.after, signal)) {
    if (item.type === 'open') yield [];
    else if (item.type === 'event') yield log.read(item.event);
    else {
      const piece = log.replies.onPiece(item.piece);
      if (piece !== null) yield [piece];
    }
  }
}

async function* polled(
  connection: Connection,
  sessionId: string,
  log: LogReader,
  untilMs: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<FollowItem[]> {
  for await (const events of eventPolls(connection, sessionId, { after: log.after, untilMs }, signal)) yield events.flatMap((event) => log.read(event));
}

/** Passes each offset on once. */
class LogReader {
  after: number;
  readonly replies: OpenReplies;

  constructor(after: number, replies: OpenReplies) {
    this.after = after;
    this.replies = replies;
  }

  read(event: AgentEvent): FollowItem[] {
    if (event.offset <= this.after) return [];
    this.after = event.offset;
    return [...this.replies.onEvent(event), { type: 'event', event }];
  }
}

function connectionItem(
  state: ConnectionItem['state'],
  transport: ConnectionItem['transport'],
  retryInMs: number | null = null,
  error: AgentError | null = null,
): ConnectionItem {
  return { type: 'connection', state, transport, retryInMs, error };
}

/** An answer that makes no sense is final at first, when the address may be wrong; later it comes from a network that is being changed. */
function isFinal({ status, code, isTransient }: AgentError, wasOpen: boolean): boolean {
  if (status !== null && status >= 400 && status < 500) return !isTransient;
  return !wasOpen && (code === 'client.redirected' || code === 'client.bad_answer');
}
