import { RETAINED_WITHIN_MS } from '#bus/bus.ts';

const KIB = 1_024;
const MIB = 1_024 * KIB;

/** Every bound of this room, with its reason. Times are milliseconds. Tests pass smaller ones. */
export const gatewayLimits = {
  /** The largest request: a few images or an hour of compressed audio as base64, and what the bus takes as one item. */
  bodyBytes: 32 * MIB,
  /** One batch of traces, as it was sent: exporters' own batches are a few hundred kilobytes. */
  tracesBytes: 4 * MIB,
  /** Nesting of a request. No schema or message comes near it, and every later reader and writer of the JSON recurses. */
  bodyDepth: 200,
  /**
   * Texts, numbers, lists and objects of a request: ten thousand messages have some sixty thousand. Each that is wrong costs the validation
   * a kilobyte, and 120,000 of them overflow its stack.
   */
  bodyValues: 100_000,
  /** Bodies that are being read or handed on at once. Over it a request is told to come back: memory is finite. */
  bodyBytesInHand: 512 * MIB,
  /** Calls held at once. Each may hold `unsentBytes` and its socket; over it another replica should serve. */
  openCalls: 4_096,
  /** Connections that the system holds until they are accepted. Past it they are reset, or hang: a burst must fit that is refused one by one. */
  connectionsToAccept: 4_096,
  /** What a refused client is told to wait. */
  retryAfterMs: 1_000,
  /** From a request's first byte to its last: 32 MiB over a slow line. */
  requestMs: 300_000,
  /** For the bus to take a call. A healthy one needs milliseconds; past it the client should try again. */
  publishMs: 10_000,
  /** Until then nothing is sent, so that an error has its proper status; after it proxies begin to think the call is dead. */
  headerDelayMs: 15_000,
  /** A call that is longer is not offered, since it would be kept until its answer begins. Nearly all are shorter, and all that may be open fill 256 MiB at most. */
  dispatchedCharacters: 32 * KIB,
  /** Frames that show no content wait for one that does; more than this (a long debug chunk) is sent at once. */
  bufferedBytes: 256 * KIB,
  /** A client that has not taken this much is dropped: the bus is never paused for one reader. */
  unsentBytes: 256 * KIB,
  /** Frames that arrive while earlier ones are read again. */
  pendingBytes: 4 * MIB,
  /**
   * Silence after which what the bus keeps is read again, since live frames may be lost; doubled each time nothing was found. Three signs
   * of life of a worker fall into it: one that has shown content and then is silent for so long is dead.
   */
  silenceMs: 6_000,
  silenceMaxMs: 60_000,
  /** For the bus to give what it keeps of a call. */
  replayMs: 5_000,
  /** After this the bus keeps what was said before. */
  resumableMs: RETAINED_WITHIN_MS,
  /** For a client whose connection we have cut to come back, here or at another gateway. */
  graceMs: 30_000,
  /** Calls without a reader that are kept for their clients. Past it the oldest is given up. */
  resumableCalls: 4_096,
  /** Past its deadline a worker says so itself; this long after it the worker is taken for dead. */
  deadlineGraceMs: 5_000,
  /** For a client to take the last bytes of its answer. */
  finishMs: 30_000,
  /** At a stop: for the last error chunks to leave, after which sockets are cut. */
  stopFlushMs: 2_000,
  /** `session_id` in a header; the schema has the same bound for the body. */
  sessionIdLength: 128,
} as const;

export type GatewayLimits = { readonly [Name in keyof typeof gatewayLimits]: number };
