import { Agent, request } from 'node:http';

/** The outcome of one request. `none`: there was no response, and why. `unsent`: all connections of the client were in use. */
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

/** To one gateway. Beyond the 4,096 of the listen backlog the kernel resets connections before the gateway accepts them. */
const MAX_CONNECTIONS = 3_500;

/** A client with keep-alive and a timeout per request, which sends nothing while all of its connections are in use. */
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

/** A closed loop: repeats the work at a fixed concurrency for a fixed time. @returns completions per second */
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

/** An open loop: begins the work at a fixed rate, however long each takes. Resolves when the time is over, with what was begun. */
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
