/** Every bound of this gateway. Times that tests shorten are in `waits`. */
export const limits = {
  /** Also the only bound of a message's text. */
  bodyBytes: 1_024 * 1_024,
  /** 64 of the largest bodies, partial ones included. Parsed they take several times the memory. */
  bufferedBodyBytes: 64 * 1_024 * 1_024,
  /** Of signed requests and of logins, which need no key: 16 of the largest. */
  bufferedUnkeyedBytes: 16 * 1_024 * 1_024,
  /** Deliveries that wait for a model's verdict, each with its body. */
  openJudgements: 256,
  /** A slow sender holds only a socket. */
  requestMs: 30_000,
  /** As long as a subject token may be. */
  idCharacters: 128,
  idempotencyKeyCharacters: 256,
  /** Of a client's address, with a right or a wrong key. */
  loginsPerMinute: 5,
  /** Of a form with the longest key and address, percent-encoded. */
  loginBytes: 32 * 1_024,
  keyCharacters: 4_096,
  /** Of the path to which a login leads. */
  nextCharacters: 2_048,
  /** Incomplete ones. Clients have one; more are pipelined, each possibly a page of events. */
  requestsPerConnection: 100,
  /** From the end of a drain until connections are cut. */
  cutAfterMs: 10,
  /** Listen backlog. Past it connections are reset or hang, so a refused burst must fit. */
  connectionsToAccept: 4_096,
  /** A closure and a timer each; includes commands after their request timed out. */
  waitingCommands: 10_000,
  /** Per statement. */
  processedCommandsPerRead: 1_000,
  /** Sessions of a customer that are deleted at once. */
  sessionsPerCascadeStep: 50,
  /** A feed reader, a timer and a socket each. */
  openPolls: 20_000,
  openStreams: 10_000,
  /** A page ends with the event that reaches this. */
  pageBytes: 4 * 1_024 * 1_024,
  /** Of a page, what the database joins to one row and the gateway decodes at once. A row ends with the event that reaches a multiple of it. */
  pagePieceBytes: 64 * 1_024,
  /** For `total_count`; more are not counted. */
  countedSessions: 1_000,
  /** For an SSE reader that catches up. */
  streamPageEvents: 200,
  /** Feeds without readers; past it the longest idle one is evicted. */
  idleFeeds: 10_000,
  /** Per feed: the start of a turn, for the poll right after the post. */
  retainedCharacters: 4 * 1_024,
  /** Per statement. */
  sessionsPerCheck: 5_000,
  /** Write size for large events to a client that catches up: a slow client drains some of it, a stalled one none. */
  ssePieceBytes: 64 * 1_024,
  /** Past it a client is disconnected; it can resume. */
  unsentBytes: 256 * 1_024,
  /** Replies in generation; a turn has one at a time. */
  repliesPerSession: 16,
  /** Remembered per session, to drop their late frames. */
  endedReplies: 64,
  /** Past it a reply's deltas stop; the message still comes. */
  replyCharacters: 1_024 * 1_024,
  /** Frames of a reply while lost ones before them are fetched. */
  pendingBytes: 1_024 * 1_024,
} as const;

export const waits = {
  /** For the body of a request that needs no key, at most 1 MiB. */
  unkeyedBodyMs: 10_000,
  /** At a stop: for the bodies of requests that have begun to arrive. They can be sent again, to another gateway. */
  stopBodyMs: 2_000,
  /** Each login takes at least this long: guessing is slow. */
  loginMs: 250,
  /** Then the processed command is read: the reply may be lost. */
  silenceMs: 1_000,
  /** For the last read of the processed command. */
  lastReadMs: 500,
  /** A durable customer message without an offset by then gets 202. */
  acceptMs: 5_000,
  /** Any other command without a reply by then gets 503. */
  replyMs: 10_000,
  /** After which no further sessions of a customer are deleted; the request is to be repeated. */
  cascadeMs: 15_000,
  /** How long a command counts as waiting at its owner after its request timed out, unless its reply comes. */
  lateMs: 30_000,
  /** For a start command to be stored. The row is the acceptance: its owner finds it without the command. */
  publishMs: 2_000,
  /** Of a model call of this gateway. A delivery that needs two takes twice that; senders wait for 10 s and more. */
  modelCallMs: 20_000,
  /** For a delivery that another gateway judges; then it is judged here, too. Longer than its two model calls. */
  judgedElsewhereMs: 45_000,
  /** Then the retained frames of the call are replayed: its answer may be lost. Doubled each time. */
  modelSilenceMs: 2_000,
  /** A long-poll's default. */
  pollMs: 20_000,
  /** Until the broker confirms a subscription. Past it the log is read regardless. */
  subscribedMs: 1_000,
  idleFeedMs: 60_000,
  /** Head comparison, for lost notices. */
  checkFeedsMs: 30_000,
  /** The same of feeds that began one to two intervals ago, for notices that came before the broker had their subscription. */
  checkBegunFeedsMs: 2_000,
  /** Comments that keep an idle stream open through proxies. */
  heartbeatMs: 15_000,
  /** A client that reads nothing for this long, catching up or after the end of its stream, is disconnected. */
  stalledMs: 10_000,
  /** A database that does not respond by then is not ready. */
  readinessMs: 2_000,
  /** Between readiness checks while booting or unavailable. */
  bootCheckMs: 250,
} as const;

export type Waits = { readonly [Name in keyof typeof waits]: number };
