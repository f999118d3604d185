import { AsyncLocalStorage } from 'node:async_hooks';
import { DecoratorHandler, type Dispatcher, fetch as send } from 'undici';
import { type Clock, steadyClock } from '#shared/clock.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import { openOutbound } from '#shared/http/outbound.ts';
import { parseRetryAfter } from '#shared/http/retry-after.ts';
import { jsonIn } from '#shared/json-in.ts';
import { ByteBudget } from './byte-budget.ts';
import { type BodyGate, jsonGate, messageGate } from './message-gate.ts';
import { ToolFailure } from './tool-failure.ts';

const CONNECT_TIMEOUT_MS = 5_000;
/** Per server: calls, cancellations and the standing stream. */
const MAX_CONNECTIONS = 32;
/** Of one response or stream of responses. */
export const MAX_RESPONSE_BYTES = 16 * 1024 * 1024;
/** The request whose response is a standing stream. */
const LISTEN = 'subscriptions/listen';
const BODILESS = new Set([101, 204, 205, 304]);

/** Observes one JSON-RPC request of the MCP client, or those of its handshake. */
export interface RequestWatch {
  signal: AbortSignal;
  /** Of all its responses together. */
  budget: ByteBudget;
  /** Its id in JSON-RPC. */
  onId(id: string): void;
  /** The request is about to be written: from now on the server may have seen it. */
  onSent(): void;
  onRetryAfter(waitMs: number | null): void;
  /** Responses that were event streams, so far. */
  readonly streams: number;
  /** The client sends a request or a notification, not a response. @returns called when it has handled all of what came for it, and resumes no stream */
  onMessage(): (unanswered: ToolFailure) => void;
  /** A piece of a response was read, or handled. */
  onRead(sizeBytes: number): void;
  onStreamOpened(): void;
  /** The response stream has ended; with a failure when our limits cut it. */
  onStreamEnded(failure: ToolFailure | null): void;
}

/** The `fetch` of all tool servers; it follows no redirect. `onCut`: a stream was ended by our limits. */
export interface WatchedFetch {
  fetch(url: string | URL, init?: RequestInit, onCut?: () => void): Promise<Response>;
  /** Runs `work` with its requests observed: the MCP client does not report a stream that ends before its response. */
  watching<Result>(watch: RequestWatch, work: () => Promise<Result>): Promise<Result>;
  /** The watch of the caller, if its requests are observed. */
  watch(): RequestWatch | null;
  close(): Promise<void>;
}

interface WatchedFetchOptions {
  environment: Environment;
  /** Epoch milliseconds: for dates in responses. */
  nowMs: () => number;
  /** Monotonic: for the rates of streams. Absent: this process's. */
  intervalClock?: Clock;
}

export function openWatchedFetch({ environment, nowMs, intervalClock = steadyClock }: WatchedFetchOptions): WatchedFetch {
  const watches = new AsyncLocalStorage<RequestWatch | null>();
  const connections = openOutbound(environment).openDispatcher({ connectTimeoutMs: CONNECT_TIMEOUT_MS, maxConnections: MAX_CONNECTIONS });
  const dispatcher = connections.compose((dispatch) => (options, handler) => {
    const watch = watches.getStore();
    return dispatch(options, watch ? new SendObserver(handler, watch) : handler);
  });

  async function fetch(url: string | URL, init: RequestInit = {}, onCut: () => void = () => {}): Promise<Response> {
    const { method = 'GET', signal } = init;
    const headers = [...new Headers(init.headers)];
    const store = watches.getStore() ?? null;
    const requestId = answeredIdIn(init.body);
    const watch = store !== null && isOfRequest(method, requestId, headers) ? store : null;
    if (requestId !== undefined) watch?.onId(String(requestId));
    const go = () =>
      send(url, {
        method,
        headers,
        redirect: 'manual',
        dispatcher,
        ...(typeof init.body === 'string' ? { body: init.body } : {}),
        ...(watch !== null ? { signal: watch.signal } : signal ? { signal } : {}),
      });
    const response = await (watch === null ? watches.run(null, go) : go()); // no fail point: caller
    watch?.onRetryAfter(parseRetryAfter(response.headers.get('retry-after'), nowMs()));
    const { status, statusText } = response;
    if (response.body === null || BODILESS.has(status)) return new Response(null, { status, statusText, headers: [...response.headers] });
    const type = response.headers.get('content-type') ?? '';
    const isStream = /^text\/event-stream\b/i.test(type);
    const gate = isStream ? messageGate(requestId, () => intervalClock.nowMs()) : /^application\/json\b/i.test(type) ? jsonGate() : null;
    // The client drops the body of a 202.
    const isRead = isStream && response.ok && status !== 202;
    if (isRead) watch?.onStreamOpened();
    // A standing stream has no total budget: its gate bounds its rate.
    const budget = watch?.budget ?? (isStream && requestId === undefined ? null : new ByteBudget(MAX_RESPONSE_BYTES));
    const onEnd = (failure: ToolFailure | null) => {
      if (failure !== null) onCut();
      if (isRead) watch?.onStreamEnded(failure);
    };
    const body = limited(response.body, { budget, gate, onRead: (sizeBytes) => watch?.onRead(sizeBytes), onEnd });
    return new Response(body, { status, statusText, headers: [...response.headers] });
  }

  return {
    fetch,
    watching: (watch, work) => watches.run(watch, work),
    watch: () => watches.getStore() ?? null,
    close: () => connections.destroy(),
  };
}

class SendObserver extends DecoratorHandler implements Dispatcher.DispatchHandler {
  readonly #watch: RequestWatch;
  readonly #next: Dispatcher.DispatchHandler;

  constructor(next: Dispatcher.DispatchHandler, watch: RequestWatch) {
    super(next);
    this.#watch = watch;
    this.#next = next;
  }

  onRequestStart(controller: Dispatcher.DispatchController, context: unknown): void {
    this.#watch.onSent();
    this.#next.onRequestStart?.(controller, context);
  }
}

/** Undefined for messages that await no response, or only one that ends a standing stream. */
function answeredIdIn(body: unknown): unknown {
  const message = typeof body === 'string' ? jsonIn(body) : null;
  return typeof message === 'object' && message !== null && 'id' in message && 'method' in message && message.method !== LISTEN ? message.id : undefined;
}

function isOfRequest(method: string, requestId: unknown, headers: readonly [string, string][]): boolean {
  return method === 'GET' ? headers.some(([name]) => name === 'last-event-id') : method === 'POST' && requestId !== undefined;
}

interface BodyLimits {
  budget: ByteBudget | null;
  gate: BodyGate | null;
  /** For each piece that was read, and each tick in which the gate has handled one. */
  onRead(sizeBytes: number): void;
  /** Once. */
  onEnd(failure: ToolFailure | null): void;
}

/** The body through its gate, up to its budget. */
function limited(body: ReadableStream<Uint8Array>, { budget, gate, onRead, onEnd }: BodyLimits): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  /** @returns whether something was enqueued, or the body has ended; `pull` is not called again without either */
  async function next(controller: ReadableStreamDefaultController<Uint8Array>): Promise<boolean> {
    const { value, done } = await reader.read(); // no fail point: caller
    if (done) {
      const rest = gate?.end();
      if (rest !== undefined && rest.byteLength > 0) controller.enqueue(rest);
      controller.close();
      onEnd(null);
      return true;
    }
    onRead(value.byteLength);
    budget?.use(value.byteLength);
    if (gate === null) controller.enqueue(value);
    else {
      let hasPassed = false;
      // no fail point: waits
      for await (const slice of gate.pass(value)) {
        onRead(slice.byteLength);
        if (slice.byteLength === 0) continue;
        controller.enqueue(slice);
        hasPassed = true;
      }
      return hasPassed;
    }
    return true;
  }
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        while (!(await next(controller))); // no fail point: caller
      } catch (error) {
        controller.error(error);
        reader.cancel(error).catch(() => {});
        onEnd(error instanceof ToolFailure ? error : null);
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}
