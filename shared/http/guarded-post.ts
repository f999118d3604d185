import type { Dispatcher } from 'undici';
import { type Clock, systemClock } from '../clock.ts';
import { type GuardedRequestsOptions, openGuardedRequests } from './guarded-requests.ts';
import { parseRetryAfter } from './retry-after.ts';

/** One attempt, from the DNS lookup to the response's status. */
const POST_TIMEOUT_MS = 10_000;
/** Bodies are dropped; this much is read first, so that a receiver is not cut off while it writes a short one. */
const RESPONSE_MAX_BYTES = 64 * 1024;
const RESPONSE_MAX_MS = 1_000;

/** One POST to a URL that a caller chose. */
export interface GuardedPost {
  url: string;
  /** Hosts, or `.host` for a host and its subdomains; null and empty: any. */
  hostAllowlist: readonly string[] | null;
  headers: Record<string, string>;
  body: Uint8Array;
  /** For the whole attempt; default 10 seconds. */
  timeoutMs?: number;
  signal?: AbortSignal;
}

interface GuardedResponse {
  /** Of the receiver. A redirect is never followed. */
  status: number;
  /** `Retry-After`, 0 to 60,000; null: none. */
  retryAfterMs: number | null;
}

/** Posts to URLs from callers, guarded against SSRF. */
export interface GuardedPoster {
  /** @throws as `GuardedRequests.send` */
  post(request: GuardedPost): Promise<GuardedResponse>;
  /** Ends all attempts in flight with `outbound.failed`, and waits for their end. */
  close(): Promise<void>;
}

export interface GuardedPosterOptions extends GuardedRequestsOptions {
  clock?: Clock;
}

export function openGuardedPoster({ clock = systemClock, ...options }: GuardedPosterOptions): GuardedPoster {
  const requests = openGuardedRequests(options);
  return {
    post: ({ url, hostAllowlist, headers, body, timeoutMs = POST_TIMEOUT_MS, signal: caller }) =>
      requests.send({ url, hostAllowlist, timeoutMs, signal: caller }, async (client, path, signal) => {
        const response = await client.request({ method: 'POST', path, headers, body, reset: true, signal });
        await drop(response.body);
        const retryAfter = [response.headers['retry-after']].flat()[0] ?? null;
        return { status: response.statusCode, retryAfterMs: parseRetryAfter(retryAfter, clock.nowMs()) };
      }),
    close: () => requests.close(),
  };
}

/** Reads the rest of a response within bounds. Errors do not matter: the status is known. */
async function drop(body: Dispatcher.ResponseData['body']): Promise<void> {
  await body.dump({ limit: RESPONSE_MAX_BYTES, signal: AbortSignal.timeout(RESPONSE_MAX_MS) }).catch(() => {});
}
