import { Agent, request } from 'node:http';

/** What became of one request. `none`: there was no answer, and why. `unsent`: all connections that the client may have were in use. */
export interface Answered {
  status: number | 'none' | 'unsent';
  retryAfter: string | null;
  text: string;
  tookMs: number;
}

export interface LoadClient {
  /** Never rejects. */
  send(method: 'GET' | 'POST', url: string, body: object | null, headers?: Record<string, string>): Promise<Answered>;
  close(): void;
}

/** To one gateway. Past the 4,096 that the system holds for a gateway that has no time to accept them, it resets connections that nobody has seen. */
const MAX_CONNECTIONS = 3_500;

/** A client that keeps its connections, waits for each answer so long, and sends nothing while it has as many connections in use as it may. */
export function loadClient(timeoutMs: number): LoadClient {
  const agent = new Agent({ keepAlive: true, maxFreeSockets: MAX_CONNECTIONS });
  const inUse = new Map<string, number>();
  return {
    send: (method, url, body, headers = {}) =>
      new Promise((resolve) => {
        const { host } = new URL(url);
        const connections = inUse.get(host) ?? 0;
        if (connections >= MAX_CONNECTIONS) return resolve({ status: 'unsent', retryAfter: null, text: '', tookMs: 0 });
        inUse.set(host, connections + 1);
        const startedAtMs = performance.now();
        let isOver = false;
        const end = (outcome: Omit<Answered, 'tookMs'>) => {
          if (isOver) return;
          isOver = true;
          inUse.set(host, (inUse.get(host) ?? 1) - 1);
          clearTimeout(timer);
          resolve({ ...outcome, tookMs: performance.now() - startedAtMs });
        };
        const none = (why: string) => end({ status: 'none', retryAfter: null, text: why });
        const text = body === null ? '' : JSON.stringify(body);
        const json = body === null ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
        const sent = request(url, { method, agent, headers: { ...json, ...headers } }, (response) => {
          const pieces: string[] = [];
          response.setEncoding('utf8');
          response.on('data', (piece: string) => pieces.push(piece));
          response.on('error', (error) => none(`cut: ${error.message}`));
          response.on('end', () => {
            const { statusCode = 0, headers: answered } = response;
            end({ status: statusCode, retryAfter: answered['retry-after'] ?? null, text: pieces.join('') });
          });
        });
        const timer = setTimeout(() => {
          none('no answer in time');
          sent.destroy();
        }, timeoutMs);
        sent.on('error', (error) => none(error.message));
        sent.end(text);
      }),
    close: () => agent.destroy(),
  };
}

/** Does something again and again, so many at a time, for so long. @returns how often it was done per second */
export async function closedLoop(atOnce: number, forMs: number, work: () => Promise<void>): Promise<number> {
  const startedAtMs = performance.now();
  let done = 0;
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (performance.now() - startedAtMs < forMs) {
        await work();
        done += 1;
      }
    }),
  );
  return done / ((performance.now() - startedAtMs) / 1_000);
}

const TICK_MS = 10;

/** Begins something so many times a second, however long each takes. Resolves when the time is over, with what was begun. */
export function openLoop<Result>(perSecond: number, forMs: number, work: () => Promise<Result>): Promise<Promise<Result>[]> {
  return new Promise((resolve) => {
    const startedAtMs = performance.now();
    const begun: Promise<Result>[] = [];
    const ticking = setInterval(() => {
      const atMs = Math.min(performance.now() - startedAtMs, forMs);
      while (begun.length < (atMs / 1_000) * perSecond) begun.push(work());
      if (atMs < forMs) return;
      clearInterval(ticking);
      resolve(begun);
    }, TICK_MS);
  });
}
