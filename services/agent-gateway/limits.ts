/**
 * Every bound of this gateway, in one place. Times that a test shortens are in `waits` below; everything else is fixed.
 */
export const limits = {
  /** Largest request body. A message's text lies within it and has no other limit. */
  bodyBytes: 1_024 * 1_024,
  /** Bytes of all request bodies held at once, unfinished ones included: 64 of the largest. Parsed they take several times as much memory. */
  bodyBytesInHand: 64 * 1_024 * 1_024,
  /** How long a client may take to send its request: a slow sender holds a socket, and nothing else should. */
  requestTimeoutMs: 30_000,
  /** Longest id in a path: as long as a token of a subject may be. */
  idCharacters: 128,
  idempotencyKeyCharacters: 256,
  /** Requests of one connection that have no complete answer yet. Clients have one; more are pipelined, and each may be a page of events. */
  requestsPerConnection: 100,
  /** Connections that the system holds until they are accepted. Past it they are reset, or hang: a burst must fit that is refused one by one. */
  connectionsToAccept: 4_096,
  /** Requests that wait for the answer to their command, those included that were told to wait no longer. Each is a closure and a timer. */
  waitingCommands: 10_000,
  /** Seen rows asked for in one statement. */
  processedCommandsPerRead: 1_000,
  /** Long-polls open at once: a reader's entry, a timer and a socket each. */
  openPolls: 20_000,
  /** SSE readers open at once. */
  openStreams: 10_000,
  /** Bytes of events in one answer: a page ends with the event that passes it, and the reader goes on from there. */
  pageBytes: 4 * 1_024 * 1_024,
  /** Events read at once for an SSE reader that catches up. */
  streamPageEvents: 200,
  /** Feeds kept without a reader. Past this the one that has waited longest is let go early. */
  idleFeeds: 10_000,
  /** Characters of a session's newest events that stay in memory with its feed: what a turn begins with, for the poll that asks for it right away. */
  retainedCharacters: 4 * 1_024,
  /** Sessions whose heads are compared in one statement. */
  sessionsPerCheck: 5_000,
  /** A large event goes to a client that catches up in pieces of this size, so that one that is slow is told from one that has stopped. */
  ssePieceBytes: 64 * 1_024,
  /** What a client may leave unread in our memory before it is dropped; it can resume. */
  unsentBytes: 256 * 1_024,
  /** Replies in the making that are followed in one session. A turn makes one at a time. */
  repliesPerSession: 16,
  /** Replies of a session that are remembered as ended, so that late tokens of theirs are dropped. */
  endedReplies: 64,
  /** Text of one reply in the making. Past it the deltas stop; the message itself still comes. */
  replyCharacters: 1_024 * 1_024,
  /** Frames held back while the lost ones before them are fetched. */
  bufferedFrames: 4_096,
} as const;

/** All waiting times, in milliseconds. */
export const waits = {
  /** Silence after which the seen row is read instead of waiting for an answer that may be lost. */
  silenceMs: 1_000,
  /** The look at the seen row when all waiting is over: a database that is slower than that has not been heard in time. */
  lastLookMs: 500,
  /** A customer's message that is durable and has no place in the log by then is answered with 202. */
  acceptMs: 5_000,
  /** Anything else without an answer by then is answered with 503. */
  replyMs: 10_000,
  /** For so long a command that was not answered in time counts as one that its owner has yet to come to, unless it is heard of before. */
  lateMs: 30_000,
  /** A trigger waits this long for its start command to be stored: its row is its acceptance, and the owner finds that by itself. */
  publishMs: 2_000,
  /** How long a long-poll waits that does not say. */
  pollMs: 20_000,
  /** How long the bus may take to say that it follows a session. Past it the log is read all the same. */
  subscribedMs: 1_000,
  /** How long a feed is kept without a reader. */
  idleFeedMs: 60_000,
  /** How often the heads of all sessions with readers are compared with the database, in case a notice was lost. */
  checkFeedsMs: 30_000,
  /** Comments that keep an idle stream alive through proxies. */
  heartbeatMs: 15_000,
  /** A client that catches up, or was told goodbye, and takes nothing for this long is dropped. */
  stalledMs: 10_000,
  /** A database that does not answer the readiness query by then is not ready. */
  readinessMs: 2_000,
  /** How often a gateway that is still starting, or has lost its database, looks whether it is ready. */
  bootCheckMs: 250,
} as const;

export type Waits = { readonly [Name in keyof typeof waits]: number };
