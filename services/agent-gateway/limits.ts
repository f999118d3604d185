/** Every bound of this gateway. Times that tests shorten are in `waits`. */
export const limits = {
  /** Largest request body; the only bound of a message's text. */
  bodyBytes: 1_024 * 1_024,
  /** All request bodies held at once, partial ones included: 64 of the largest. Parsed they take several times the memory. */
  bodyBytesInHand: 64 * 1_024 * 1_024,
  /** How long a client may take to send its request: a slow sender holds only a socket. */
  requestTimeoutMs: 30_000,
  /** Longest id in a path: the bound of a subject token. */
  idCharacters: 128,
  idempotencyKeyCharacters: 256,
  /** Requests of one connection without a complete response. Clients have one; more are pipelined, each possibly a page of events. */
  requestsPerConnection: 100,
  /** The listen backlog. Past it connections are reset or hang, so a burst that is refused must fit. */
  connectionsToAccept: 4_096,
  /** Requests that wait for a command's reply, plus commands whose request timed out. Each is a closure and a timer. */
  waitingCommands: 10_000,
  /** Processed commands read in one statement. */
  processedCommandsPerRead: 1_000,
  /** Open long-polls: a feed reader, a timer and a socket each. */
  openPolls: 20_000,
  /** Open SSE streams. */
  openStreams: 10_000,
  /** Bytes of one page: it ends with the event that reaches this, and the reader continues from there. */
  pageBytes: 4 * 1_024 * 1_024,
  /** Page size of an SSE reader that catches up. */
  streamPageEvents: 200,
  /** Feeds without readers; past it the longest idle one is evicted. */
  idleFeeds: 10_000,
  /** Characters of events retained per feed: the start of a turn, for the poll right after the post. */
  retainedCharacters: 4 * 1_024,
  /** Sessions in one head comparison. */
  sessionsPerCheck: 5_000,
  /** Write size for a client that catches up: a slow client drains some of a large event, a stalled one none. */
  ssePieceBytes: 64 * 1_024,
  /** Unsent bytes of a client before it is disconnected; it can resume. */
  unsentBytes: 256 * 1_024,
  /** Replies in generation that are tracked per session. A turn has one at a time. */
  repliesPerSession: 16,
  /** Ended replies remembered per session, so that their late frames are dropped. */
  endedReplies: 64,
  /** Text of one reply in generation. Past it deltas stop; the message still comes. */
  replyCharacters: 1_024 * 1_024,
  /** Frames buffered while lost ones before them are fetched. */
  bufferedFrames: 4_096,
} as const;

/** Waiting times, in milliseconds. */
export const waits = {
  /** Silence after which the processed command is read, since the reply may be lost. */
  silenceMs: 1_000,
  /** Bound of the last read of the processed command, after the time is up. */
  lastLookMs: 500,
  /** A customer's message that is durable but has no offset by then is answered with 202. */
  acceptMs: 5_000,
  /** Any other command without a reply by then is answered with 503. */
  replyMs: 10_000,
  /** How long a command whose request timed out counts as waiting at its owner, unless its reply comes. */
  lateMs: 30_000,
  /** How long a trigger waits until its start command is stored. Its row is the acceptance: the owner finds it without the command. */
  publishMs: 2_000,
  /** Default wait of a long-poll. */
  pollMs: 20_000,
  /** How long to wait for the broker to confirm a subscription. Past it the log is read regardless. */
  subscribedMs: 1_000,
  /** How long a feed is kept without a reader. */
  idleFeedMs: 60_000,
  /** Interval of comparing all followed heads with the database, for lost notices. */
  checkFeedsMs: 30_000,
  /** Interval of comments that keep an idle stream open through proxies. */
  heartbeatMs: 15_000,
  /** A client that catches up, or whose stream was ended, is disconnected after reading nothing for this long. */
  stalledMs: 10_000,
  /** Bound of the readiness query. */
  readinessMs: 2_000,
  /** Interval of readiness checks while booting or while the database is unreachable. */
  bootCheckMs: 250,
} as const;

export type Waits = { readonly [Name in keyof typeof waits]: number };
