import { setTimeout as delay } from 'node:timers/promises';

interface Answered {
  status: number;
  body: unknown;
}

/** A client that goes on until it is answered, as real ones do that were told to come again. */
export interface RetryingClient {
  /** Posts until it is accepted, or refused for good. @throws when neither comes in time */
  post(path: string, fields: object): Promise<Answered>;
  get(path: string): Promise<Answered>;
  figures: {
    /** Requests that were refused for the moment, or broke off, and were sent again. */
    sentAgain: number;
    longestPostMs: number;
    /** Posts that were answered with 202. */
    placedLater: number;
  };
}

interface ClientOptions {
  /** Where the next request goes; throws while there is nowhere. */
  nextUrl(): string;
  key: string;
  /** For one request with all its tries. */
  timeoutMs: number;
  /** A post that is answered with 202 is sent again as well, until it has its place. */
  retriesAccepted?: boolean;
}

const RETRY_MS = 200;
/** Longer than any server keeps a request. */
const ANSWER_MS = 30_000;
/** For the moment; all else is an answer. */
const COME_AGAIN = new Set([429, 503]);

export function retryingClient({ nextUrl, key, timeoutMs, retriesAccepted = false }: ClientOptions): RetryingClient {
  const figures = { sentAgain: 0, longestPostMs: 0, placedLater: 0 };
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };

  /** Null: it broke off without an answer, or with half of one. */
  async function once(path: string, init: RequestInit): Promise<Answered | null> {
    try {
      const response = await fetch(`${nextUrl()}${path}`, { ...init, headers, signal: AbortSignal.timeout(ANSWER_MS) });
      const body: unknown = await response.json();
      return { status: response.status, body };
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
      if (answered !== null && !COME_AGAIN.has(answered.status) && isPlaced) return answered;
      if (performance.now() > untilMs) throw new Error(`${path} was answered ${answered?.status}: ${JSON.stringify(answered?.body)}`);
      figures.sentAgain += 1;
      await delay(RETRY_MS);
    }
  }

  return {
    figures,
    get: (path) => insist(path, {}),
    post: async (path, fields) => {
      const begunAtMs = performance.now();
      const answered = await insist(path, { method: 'POST', body: JSON.stringify(fields) });
      figures.longestPostMs = Math.max(figures.longestPostMs, performance.now() - begunAtMs);
      if (answered.status === 202) figures.placedLater += 1;
      return answered;
    },
  };
}
