import { RETAINED_WITHIN_MS } from '#bus/messages/retention.ts';

const KIB = 1_024;
const MIB = 1_024 * KIB;

/** Every limit of the router gateway, with its reason. Times are milliseconds. Tests pass smaller ones. */
export const gatewayLimits = {
  /** Of a request: a few images or an hour of compressed audio as base64, and what the bus takes as one item. */
  bodyBytes: 32 * MIB,
  /** One batch of traces as sent; exporters' batches are a few hundred kilobytes. */
  tracesBytes: 4 * MIB,
  /** Nesting of a request. No schema or message comes near it, and all code that reads or writes the JSON recurses. */
  bodyDepth: 200,
  /**
   * Values of a request: ten thousand messages have about sixty thousand. Each invalid one costs the validation a kilobyte, and 120,000 of
   * them overflow its stack.
   */
  bodyValues: 100_000,
  /** Byte budget of all bodies that are read or sent; beyond it requests are refused. */
  bufferedBodyBytes: 512 * MIB,
  /** Whose bodies have arrived. Each may hold `unsentBytes` and its socket; beyond it another replica should serve. */
  openCalls: 4_096,
  /** Of routes that need no key, open at once: beyond what people approve and apps exchange. Each has a body of at most 64 KiB. */
  publicRequests: 64,
  /** For their bodies, which are short. */
  publicBodyMs: 10_000,
  /** At a stop: for the bodies of requests that have begun to arrive. They can be sent again, to another gateway. */
  stopBodyMs: 2_000,
  /** The listen backlog. Beyond it connections are reset or hang, so a burst that is to be refused must fit. */
  connectionsToAccept: 4_096,
  retryAfterMs: 1_000,
  /** From a request's first byte to its last: 32 MiB over a slow line. */
  requestMs: 300_000,
  /** A healthy bus needs milliseconds. */
  publishMs: 10_000,
  /** Headers wait for content up to this long, so that an error has its proper status. Later, proxies take the call for dead. */
  headerDelayMs: 15_000,
  /** Texts up to here are always dispatched. They stay in memory until their call ends: at most 256 MiB for all open calls. */
  shortDispatchBytes: 32 * KIB,
  /** A longer text is dispatched up to this size if the bus has messages of it; larger ones are queued. */
  longDispatchBytes: 4 * MIB,
  /** Of all longer texts that are dispatched; beyond it they are queued. The broker cuts off a worker that leaves 64 MB unread, as one does that is paused. */
  longDispatchesBytes: 32 * MIB,
  /** Of frames before the first content; more (a long debug chunk) are sent at once. */
  bufferedBytes: 256 * KIB,
  /** A client with more unread bytes is disconnected: the bus is never paused for one reader. */
  unsentBytes: 256 * KIB,
  /** Frames that arrive during a replay. */
  pendingBytes: 4 * MIB,
  /**
   * Silence after which the call is replayed, since live frames may be lost; doubled each time it repeats. It covers three
   * heartbeats of a worker: a worker that is silent for longer after its first content is taken for dead.
   */
  silenceMs: 6_000,
  silenceMaxMs: 60_000,
  replayMs: 5_000,
  /** After this time a published frame is part of a replay. */
  resumableMs: RETAINED_WITHIN_MS,
  /** How long a disconnected client may resume its call, at any gateway. */
  graceMs: 30_000,
  /** Calls kept for clients that may resume; beyond it the oldest is aborted. */
  resumableCalls: 4_096,
  /** Without a heartbeat of its worker a detached call whose client has left counts as ended: longer than it takes to redeliver it. */
  detachedSilenceMs: 30_000,
  /** Detached calls that go on without a client and whose slots are held. */
  detachedCalls: 4_096,
  /** Past its deadline a worker reports a timeout itself; this long after it the worker is taken for dead. */
  deadlineGraceMs: 5_000,
  /** For a client to read the last bytes of its response. */
  finishMs: 30_000,
  /** At a stop: for the last error chunks to be sent, after which sockets are closed. */
  stopFlushMs: 2_000,
  /** Of the header; the schema has the same bound for the body. */
  sessionIdLength: 128,
} as const;

export type GatewayLimits = { readonly [Name in keyof typeof gatewayLimits]: number };
