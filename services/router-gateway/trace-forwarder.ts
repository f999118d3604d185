import { setTimeout as pause } from 'node:timers/promises';
import type { Outbound } from '#shared/http/outbound.ts';
import type { CollectorTls } from '#shared/telemetry/collector-tls.ts';
import type { Log } from '#shared/telemetry/log.ts';

/** Some seconds of a busy deployment. */
const MAX_WAITING_BYTES = 32 * 1_024 * 1_024;
/** For small batches, which have a fixed cost each. */
const MAX_WAITING_BATCHES = 1_024;
const CONNECTIONS = 4;
const CONNECT_MS = 2_000;
const POST_MS = 10_000;
/** Tries per batch. A longer outage of the collector loses traces rather than memory. */
const MAX_TRIES = 3;
const RETRY_MS = 500;
const TRANSIENT = new Set([429, 502, 503, 504]);
const WARN_EVERY_MS = 60_000;
/** For batches that wait at a stop. */
const STOP_MS = 2_000;

/** Number of forwards so far; reveals a gateway that is its own collector. */
export const FORWARDED = 'x-switchyard-forwarded';

interface TraceBatch {
  body: Buffer;
  contentType: string;
  /** Null: identity. */
  contentEncoding: string | null;
  /** Earlier forwards; absent: none. */
  hops?: number;
}

/** Forwards clients' traces to a collector unread, in the background. */
export interface TraceForwarder {
  /** False when the queue is full. */
  accept(batch: TraceBatch): boolean;
  stop(): Promise<void>;
}

interface ForwarderOptions {
  outbound: Outbound;
  url: string;
  /** May hold a credential. */
  headers: Readonly<Record<string, string>>;
  /** Absent: Node's certificates. */
  tls?: CollectorTls;
  log: Log;
  /** Per lost batch. */
  onDrop?(): void;
  maxWaitingBytes?: number;
}

export function openTraceForwarder(options: ForwarderOptions): TraceForwarder {
  const { outbound, url, headers, tls = {}, log, onDrop = () => {}, maxWaitingBytes = MAX_WAITING_BYTES } = options;
  const { origin, pathname, search } = new URL(url);
  const connections = outbound.openDispatcher({ connectTimeoutMs: CONNECT_MS, maxConnections: CONNECTIONS, tls });
  const target = { origin, path: `${pathname}${search}` };
  const stopped = new AbortController();
  const waiting: TraceBatch[] = [];
  let waitingBytes = 0;
  let workers: Promise<void>[] = [];
  let lost = 0;
  let lastWarningAt = Number.NEGATIVE_INFINITY;

  const recordLoss = (error: unknown) => {
    lost += 1;
    onDrop();
    if (performance.now() - lastWarningAt < WARN_EVERY_MS) return;
    lastWarningAt = performance.now();
    log.warn({ err: error, lost }, 'traces could not be forwarded to the collector');
  };
  const post = async ({ body, contentType, contentEncoding, hops = 0 }: TraceBatch): Promise<number> => {
    const encoding = contentEncoding === null ? {} : { 'content-encoding': contentEncoding };
    const sent = { ...headers, 'content-type': contentType, ...encoding, [FORWARDED]: String(hops + 1) };
    const response = await connections.request({
      ...target,
      method: 'POST',
      headers: sent,
      body,
      signal: stopped.signal,
      headersTimeout: POST_MS,
      bodyTimeout: POST_MS,
    });
    await response.body.dump();
    return response.statusCode;
  };
  const deliver = async (batch: TraceBatch): Promise<void> => {
    for (let tries = 1; ; tries += 1) {
      try {
        const status = await post(batch);
        if (status < 300) return;
        if (!TRANSIENT.has(status) || tries >= MAX_TRIES) return recordLoss(new Error(`the collector answered ${status}`));
      } catch (error) {
        if (stopped.signal.aborted || tries >= MAX_TRIES) return recordLoss(error);
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
      await connections.destroy();
    },
  };
}
