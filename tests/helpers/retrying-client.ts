import { setTimeout as delay } from 'node:timers/promises';

interface Answered {
  status: number;
  body: unknown;
}

interface Tried extends Answered {
  hasRetryAfter: boolean;
}

/** A client that retries refusals with Retry-After and lost connections, as real ones do. */
export interface RetryingClient {
  /** Posts until it is accepted, or refused permanently. @throws at the timeout */
  post(path: string, fields: object): Promise<Answered>;
  get(path: string): Promise<Answered>;
  /** A write under an idempotency key, so that a retry changes nothing more. `body` is null in the answer to a 204. */
  write(method: 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, key: string, fields?: object): Promise<Answered>;
  figures: {
    /** Requests that were retried after a transient refusal or a lost connection. */
    sentAgain: number;
    longestPostMs: number;
    /** Posts that were answered with 202. */
    placedLater: number;
  };
}

interface ClientOptions {
  /** The address of the next request; throws while there is none. */
  nextUrl(): string;
  key: string;
  /** Timeout of one request with all its tries. */
  timeoutMs: number;
  /** A post that is answered with 202 is repeated as well, until it is answered with its offset. */
  retriesAccepted?: boolean;
  /** Each try that is repeated: its status, null for a lost connection, and whether the answer said when to come again. */
  onRetry?(path: string, status: number | null, hasRetryAfter: boolean): void;
}

const RETRY_MS = 200;
/** Longer than any request takes. */
const ANSWER_MS = 60_000;
/** Transient statuses; all others are final. */
const COME_AGAIN = new Set([429, 503]);

export function retryingClient({ nextUrl, key, timeoutMs, retriesAccepted = false, onRetry = () => {} }: ClientOptions): RetryingClient {
  const figures = { sentAgain: 0, longestPostMs: 0, placedLater: 0 };
  const authorization = `Bearer ${key}`;

  /** Null when the connection was lost before the response was complete. */
  async function once(path: string, init: RequestInit): Promise<Tried | null> {
    try {
      const signal = AbortSignal.timeout(ANSWER_MS);
      const response = await fetch(`${nextUrl()}${path}`, {
        ...init,
        headers: { authorization, ...(init.body && { 'content-type': 'application/json' }), ...init.headers },
        signal,
      });
      const body: unknown = response.status === 204 ? null : await response.json();
      return { status: response.status, body, hasRetryAfter: response.headers.has('retry-after') };
    } catch (error) {
      if (error instanceof DOMException) throw new Error(`${path} was not answered within ${ANSWER_MS} ms`, { cause: error });
      return null;
    }
  }

  async function insist(path: string, init: RequestInit): Promise<Answered> {
    const untilMs = performance.now() + timeoutMs;
    for (;;) {
      const answered = await once(path, init);
      const isPlaced = !retriesAccepted || init.method !== 'POST' || answered?.status !== 202;
      if (answered !== null && !COME_AGAIN.has(answered.status) && isPlaced) return { status: answered.status, body: answered.body };
      if (isPlaced) onRetry(path, answered?.status ?? null, answered?.hasRetryAfter ?? false);
      if (performance.now() > untilMs) throw new Error(`${path} was answered ${answered?.status}: ${JSON.stringify(answered?.body)}`);
      figures.sentAgain += 1;
      await delay(RETRY_MS);
    }
  }

  return {
    figures,
    get: (path) => insist(path, {}),
    write: (method, path, idempotencyKey, fields) =>
      insist(path, { method, headers: { 'idempotency-key': idempotencyKey }, ...(fields === undefined ? {} : { body: JSON.stringify(fields) }) }),
    post: async (path, fields) => {
      const begunAtMs = performance.now();
      const answered = await insist(path, { method: 'POST', body: JSON.stringify(fields) });
      figures.longestPostMs = Math.max(figures.longestPostMs, performance.now() - begunAtMs);
      if (answered.status === 202) figures.placedLater += 1;
      return answered;
    },
  };
}
