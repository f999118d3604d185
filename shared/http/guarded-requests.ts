import type { Socket } from 'node:net';
import { type buildConnector, Client } from 'undici';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import { connectToAddresses } from './connect-to-addresses.ts';
import { type NameLookup, nameLookup } from './name-lookup.ts';
import { checkOutboundUrl, type OutboundRules, reachableAddresses } from './outbound-guard.ts';
import { skipInterimResponses } from './skip-interim-responses.ts';

const CONNECT_TIMEOUT_MS = 5_000;

export interface GuardedRequestsOptions {
  rules: OutboundRules;
  connectTimeoutMs?: number;
  lookup?: NameLookup;
  /** PEM of the only trusted authorities; null or absent: the default ones. */
  trustedCertificates?: string | null;
}

interface Attempt {
  url: string;
  /** Hosts, or `.host` for a host and its subdomains; null and empty: any. */
  hostAllowlist: readonly string[] | null;
  /** For the whole attempt. */
  timeoutMs: number;
  signal?: AbortSignal | undefined;
}

/** One exchange over a connection of its own. @param path with the query */
type GuardedExchange<Result> = (client: Client, path: string, signal: AbortSignal) => Promise<Result>;

/**
 * Requests to URLs from callers, guarded against SSRF. Every attempt checks the URL, resolves its name once, and opens a new connection to
 * exactly the checked addresses; none outlives its check.
 */
export interface GuardedRequests {
  /**
   * @throws SwitchyardError `outbound.refused` when the URL or an address of its host is not allowed; `outbound.failed` without a
   * response, with `details.reason` (`name_not_resolved`, `not_connected`, `no_answer`, `timeout`, `closed`) and `details.networkCode`,
   * the network error's code or null. Neither contains more of the URL than its host, nor any text of the receiver. After an abort, the
   * signal's reason.
   */
  send<Result>(attempt: Attempt, exchange: GuardedExchange<Result>): Promise<Result>;
  /** Ends all attempts in flight with `outbound.failed`, and waits for their end. */
  close(): Promise<void>;
}

export function openGuardedRequests(options: GuardedRequestsOptions): GuardedRequests {
  const { rules, connectTimeoutMs = CONNECT_TIMEOUT_MS, lookup = nameLookup(), trustedCertificates = null } = options;
  /** Attempts in flight: the function that ends each, and its promise. Callers bound their number. */
  const attempts = new Map<() => void, Promise<unknown>>();
  let closed = false;

  async function attempt<Result>(url: URL, exchange: GuardedExchange<Result>, signal: AbortSignal): Promise<Result> {
    const addresses = await orAborted(reachableAddresses(url, rules, lookup), signal).catch(rethrowAs(url, 'name_not_resolved'));
    const connecting = connectToAddresses(url, addresses, { timeoutMs: connectTimeoutMs, trustedCertificates, signal });
    const socket = await connecting.catch(rethrowAs(url, 'not_connected'));
    skipInterimResponses(socket);
    const client = new Client(url.origin, { connect: only(socket), headersTimeout: 0, bodyTimeout: 0 });
    try {
      return await exchange(client, `${url.pathname}${url.search}`, signal).catch(rethrowAs(url, 'no_answer'));
    } finally {
      socket.destroy();
      await client.destroy();
    }
  }

  return {
    async send(request, exchange) {
      const url = checkOutboundUrl(request.url, rules, request.hostAllowlist);
      if (closed) throw outboundFailure(url, 'closed');
      const { timeoutMs, signal } = request;
      signal?.throwIfAborted();
      const controller = new AbortController();
      const onAbort = () => controller.abort(signal?.reason);
      signal?.addEventListener('abort', onAbort, { once: true });
      const endAs = (reason: 'timeout' | 'closed') => controller.abort(outboundFailure(url, reason));
      const endAsClosed = () => endAs('closed');
      const timer = setTimeout(endAs, timeoutMs, 'timeout');
      try {
        const work = attempt(url, exchange, controller.signal);
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
  status: 'the receiver did not answer with the status 200',
  type_not_allowed: 'the answer of the receiver is of another type than expected',
  too_large: 'the answer of the receiver is too large',
} as const;

/** Without the cause: its text may come from the receiver, such as names in its certificate. */
export function outboundFailure(url: URL, reason: keyof typeof FAILURES, networkCode: string | null = null): SwitchyardError {
  return new SwitchyardError('outbound.failed', `${FAILURES[reason]} (${url.host})`, { details: { reason, networkCode } });
}

/** A catch handler: rethrows a SwitchyardError, makes an `outbound.failed` of any other. */
function rethrowAs(url: URL, reason: keyof typeof FAILURES): (error: unknown) => never {
  return (error) => {
    throw error instanceof SwitchyardError ? error : outboundFailure(url, reason, codeOf(error));
  };
}

function codeOf(error: unknown): string | null {
  const code = error instanceof Error && 'code' in error ? error.code : null;
  return typeof code === 'string' ? code : null;
}

/** A connector that returns this socket once: a second connection would bypass the address check. */
function only(socket: Socket): buildConnector.connector {
  let given = false;
  return (_options, callback) => {
    if (given) return queueMicrotask(() => callback(new Error('an attempt has one connection'), null));
    given = true;
    // Deferred: undici misses a connection that is passed before it waits for one.
    queueMicrotask(() => callback(null, socket));
  };
}

/** A lookup can't be cancelled, so an abort stops only the wait for it. */
function orAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
