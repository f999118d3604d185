import { setTimeout as pause } from 'node:timers/promises';
import { Pool } from 'undici';
import type { CollectorTls } from '#shared/telemetry/collector-tls.ts';
import type { Log } from '#shared/telemetry/log.ts';

/** Bytes of traces that wait for the collector: some seconds of a busy deployment, and what a gateway can spare. */
const MAX_WAITING_BYTES = 32 * 1_024 * 1_024;
/** Small batches too have a cost each. */
const MAX_WAITING_BATCHES = 1_024;
/** Batches under way at once. */
const CONNECTIONS = 4;
const CONNECT_MS = 2_000;
const POST_MS = 10_000;
/** Tries of one batch in all, with pauses between. A collector that is away for longer costs traces, never memory. */
const MAX_TRIES = 3;
const RETRY_MS = 500;
/** What a collector says that means: later. */
const TRANSIENT = new Set([429, 502, 503, 504]);
/** Between two lines that say that traces are lost. */
const WARN_EVERY_MS = 60_000;
/** For what still waits when the gateway stops. */
const STOP_MS = 2_000;

/** How often a batch was handed on from one gateway to another: a gateway that is its own collector is found out by it. */
export const FORWARDED = 'x-switchyard-forwarded';

interface TraceBatch {
  body: Buffer;
  contentType: string;
  /** Null: as it is. */
  contentEncoding: string | null;
  /** How often it was handed on before; absent: never. */
  hops?: number;
}

/** Hands traces on to a collector, unread, behind the back of whoever sent them. */
export interface TraceForwarder {
  /** @returns false when there is no room for it */
  accept(batch: TraceBatch): boolean;
  /** Sends what waits, for a moment, and closes. */
  stop(): Promise<void>;
}

interface ForwarderOptions {
  /** Whole address. */
  url: string;
  /** Sent with each batch; they may hold a credential. */
  headers: Readonly<Record<string, string>>;
  /** Certificates for the collector; absent: those of Node. */
  tls?: CollectorTls;
  log: Log;
  /** Hears of each batch that was taken and is lost. */
  onDrop?(): void;
  /** Smaller in tests. */
  maxWaitingBytes?: number;
}

export function openTraceForwarder({ url, headers, tls = {}, log, onDrop = () => {}, maxWaitingBytes = MAX_WAITING_BYTES }: ForwarderOptions): TraceForwarder {
  const { origin, pathname, search } = new URL(url);
  const pool = new Pool(origin, { connections: CONNECTIONS, connect: { timeout: CONNECT_MS, ...tls }, headersTimeout: POST_MS, bodyTimeout: POST_MS });
  const stopped = new AbortController();
  const waiting: TraceBatch[] = [];
  let waitingBytes = 0;
  let workers: Promise<void>[] = [];
  let lost = 0;
  let lastWarningAt = Number.NEGATIVE_INFINITY;

  const lose = (error: unknown) => {
    lost += 1;
    onDrop();
    if (performance.now() - lastWarningAt < WARN_EVERY_MS) return;
    lastWarningAt = performance.now();
    log.warn({ err: error, lost }, 'traces could not be handed on to the collector');
  };
  const post = async ({ body, contentType, contentEncoding, hops = 0 }: TraceBatch): Promise<number> => {
    const encoding = contentEncoding === null ? {} : { 'content-encoding': contentEncoding };
    const sent = { ...headers, 'content-type': contentType, ...encoding, [FORWARDED]: String(hops + 1) };
    const response = await pool.request({ method: 'POST', path: `${pathname}${search}`, headers: sent, body, signal: stopped.signal });
    await response.body.dump();
    return response.statusCode;
  };
  const deliver = async (batch: TraceBatch): Promise<void> => {
    for (let tries = 1; ; tries += 1) {
      try {
        const status = await post(batch);
        if (status < 300) return;
        if (!TRANSIENT.has(status) || tries >= MAX_TRIES) return lose(new Error(`the collector answered ${status}`));
      } catch (error) {
        if (stopped.signal.aborted || tries >= MAX_TRIES) return lose(error);
      }
      await pause(RETRY_MS * tries, undefined, { signal: stopped.signal }).catch(() => {});
    }
  };
  const work = async (): Promise<void> => {
    for (let batch = waiting.shift(); batch !== undefined; batch = waiting.shift()) {
      await deliver(batch);
      waitingBytes -= batch.body.byteLength;
    }
  };

  return {
    accept(batch) {
      if (waitingBytes + batch.body.byteLength > maxWaitingBytes || waiting.length >= MAX_WAITING_BATCHES || stopped.signal.aborted) return false;
      waitingBytes += batch.body.byteLength;
      waiting.push(batch);
      if (workers.length < CONNECTIONS) {
        const worker: Promise<void> = work().finally(() => {
          workers = workers.filter((one) => one !== worker);
        });
        workers.push(worker);
      }
      return true;
    },
    async stop() {
      const late = setTimeout(() => stopped.abort(), STOP_MS);
      while (workers.length > 0) await Promise.all(workers);
      clearTimeout(late);
      stopped.abort();
      await pool.destroy();
    },
  };
}
