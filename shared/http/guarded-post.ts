import type { Socket } from 'node:net';
import { type buildConnector, Client, type Dispatcher } from 'undici';
import { type Clock, systemClock } from '../clock.ts';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import { connectToAddresses } from './connect-to-addresses.ts';
import { type NameLookup, nameLookup } from './name-lookup.ts';
import { checkOutboundUrl, type OutboundRules, reachableAddresses } from './outbound-guard.ts';
import { parseRetryAfter } from './retry-after.ts';

const CONNECT_TIMEOUT_MS = 5_000;
/** One attempt, from the lookup of the name to the answer's status. */
const POST_TIMEOUT_MS = 10_000;
/** Nobody reads the body of an answer. So much of it is taken, so that a receiver with a short answer is not cut off while it writes. */
const RESPONSE_MAX_BYTES = 64 * 1024;
const RESPONSE_MAX_MS = 1_000;

export interface GuardedPost {
  url: string;
  /** Hosts, or `.host` for a host and all below it; null and an empty list both mean any. */
  hostAllowlist: readonly string[] | null;
  headers: Record<string, string>;
  body: Uint8Array;
  /** For the whole attempt; 10 seconds when absent. */
  timeoutMs?: number;
  /** Ends the attempt at once, in whatever state it is. */
  signal?: AbortSignal;
}

interface GuardedResponse {
  /** As the receiver gave it. A redirect is an answer like any other and is never followed. */
  status: number;
  /** What `Retry-After` asks for, from 0 to 60,000; null when it asks for nothing. */
  retryAfterMs: number | null;
}

/**
 * Sends to URLs that callers give. Every attempt checks the URL, resolves its name once, and opens a connection of its own to exactly
 * the addresses that it has checked: no connection is kept, so none outlives the check it was opened under.
 */
export interface GuardedPoster {
  /**
   * @throws SwitchyardError `outbound.refused` when the URL or an address of its host is not allowed; `outbound.failed` when there is no
   *   answer, with `details.reason` (`name_not_resolved`, `not_connected`, `no_answer`, `timeout`, `closed`) and `details.networkCode`, the
   *   code of the network's error or null. Neither holds anything of the URL but its host, nor anything the receiver said. Throws the
   *   signal's reason after an abort.
   */
  post(request: GuardedPost): Promise<GuardedResponse>;
  /** Ends all attempts under way with `outbound.failed` and waits until they have ended. */
  close(): Promise<void>;
}

interface GuardedPosterOptions {
  rules: OutboundRules;
  connectTimeoutMs?: number;
  lookup?: NameLookup;
  /** PEM of the authorities that are trusted instead of the usual ones; null or absent: the usual ones. */
  trustedCertificates?: string | null;
  clock?: Clock;
}

export function openGuardedPoster(options: GuardedPosterOptions): GuardedPoster {
  const { rules, connectTimeoutMs = CONNECT_TIMEOUT_MS, lookup = nameLookup(), trustedCertificates = null, clock = systemClock } = options;
  /** Those under way: how to end each, and its end. Callers bound how many there are. */
  const attempts = new Map<() => void, Promise<unknown>>();
  let closed = false;

  async function attempt(url: URL, { headers, body }: GuardedPost, signal: AbortSignal): Promise<GuardedResponse> {
    const addresses = await orAborted(reachableAddresses(url, rules, lookup), signal).catch(rethrowAs(url, 'name_not_resolved'));
    const connecting = connectToAddresses(url, addresses, { timeoutMs: connectTimeoutMs, trustedCertificates, signal });
    const socket = await connecting.catch(rethrowAs(url, 'not_connected'));
    const client = new Client(url.origin, { connect: only(socket), headersTimeout: 0, bodyTimeout: 0 });
    try {
      const path = `${url.pathname}${url.search}`;
      const response = await client.request({ method: 'POST', path, headers, body, reset: true, signal }).catch(rethrowAs(url, 'no_answer'));
      await drop(response.body);
      const retryAfter = [response.headers['retry-after']].flat()[0] ?? null;
      return { status: response.statusCode, retryAfterMs: parseRetryAfter(retryAfter, clock.nowMs()) };
    } finally {
      socket.destroy();
      await client.destroy();
    }
  }

  return {
    async post(request) {
      const url = checkOutboundUrl(request.url, rules, request.hostAllowlist);
      if (closed) throw failure(url, 'closed', null);
      const { timeoutMs = POST_TIMEOUT_MS, signal } = request;
      signal?.throwIfAborted();
      const controller = new AbortController();
      const onAbort = () => controller.abort(signal?.reason);
      signal?.addEventListener('abort', onAbort, { once: true });
      const endAs = (reason: 'timeout' | 'closed') => controller.abort(failure(url, reason, null));
      const endAsClosed = () => endAs('closed');
      const timer = setTimeout(endAs, timeoutMs, 'timeout');
      try {
        const work = attempt(url, request, controller.signal);
        attempts.set(endAsClosed, work);
        return await work;
      } catch (error) {
        throw controller.signal.aborted ? (controller.signal.reason ?? error) : error;
      } finally {
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
        attempts.delete(endAsClosed);
      }
    },
    async close() {
      closed = true;
      for (const end of attempts.keys()) end();
      await Promise.allSettled(attempts.values());
    },
  };
}

const FAILURES = {
  name_not_resolved: 'the name of the receiver could not be resolved',
  not_connected: 'no connection to the receiver could be made',
  no_answer: 'the receiver gave no complete answer',
  timeout: 'the receiver did not answer in time',
  closed: 'the sender is shutting down',
} as const;

/** Without the cause: its text may hold what the receiver said, such as the names in its certificate. */
function failure(url: URL, reason: keyof typeof FAILURES, networkCode: string | null): SwitchyardError {
  return new SwitchyardError('outbound.failed', `${FAILURES[reason]} (${url.host})`, { details: { reason, networkCode } });
}

/** A handler that lets our own errors pass and makes a failure of all others. */
function rethrowAs(url: URL, reason: keyof typeof FAILURES): (error: unknown) => never {
  return (error) => {
    throw error instanceof SwitchyardError ? error : failure(url, reason, codeOf(error));
  };
}

function codeOf(error: unknown): string | null {
  const code = error instanceof Error && 'code' in error ? error.code : null;
  return typeof code === 'string' ? code : null;
}

/** Gives out this socket, and no second one: whoever lost a connection has to go through the check again. */
function only(socket: Socket): buildConnector.connector {
  let given = false;
  return (_options, callback) => {
    if (given) return queueMicrotask(() => callback(new Error('an attempt has one connection'), null));
    given = true;
    // Not at once: the client does not notice a connection that is there before it has begun to wait.
    queueMicrotask(() => callback(null, socket));
  };
}

/** Reads what is left of an answer within bounds. How that ends does not matter: the receiver has said its status. */
async function drop(body: Dispatcher.ResponseData['body']): Promise<void> {
  await body.dump({ limit: RESPONSE_MAX_BYTES, signal: AbortSignal.timeout(RESPONSE_MAX_MS) }).catch(() => {});
}

/** A lookup can't be called off: its caller does not wait for it. */
function orAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
