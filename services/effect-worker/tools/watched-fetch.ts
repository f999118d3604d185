import { AsyncLocalStorage } from 'node:async_hooks';
import { DecoratorHandler, type Dispatcher, EnvHttpProxyAgent, fetch as send } from 'undici';
import type { Environment } from '#shared/config/secret-ref.ts';
import { parseRetryAfter } from '#shared/http/retry-after.ts';
import { ByteBudget } from './byte-budget.ts';
import { ToolFailure } from './tool-failure.ts';

const CONNECT_TIMEOUT_MS = 5_000;
/** To one server: its calls at once, and beside them cancellations and the standing stream. */
const MAX_CONNECTIONS = 32;
/** One answer, or one stream of answers. What a model sees of it is far less. */
export const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
/** Responses that have no body, whatever the server sends. */
const BODILESS = new Set([101, 204, 205, 304]);

/** What is to be learned of one JSON-RPC request while the MCP client sends it. */
export interface RequestWatch {
  /** Closes its connection. */
  signal: AbortSignal;
  /** Of what its answers may bring in all. */
  budget: ByteBudget;
  /** The request is about to be written: from now on the server may have seen it. */
  onSent(): void;
  onRetryAfter(waitMs: number | null): void;
  onStreamOpened(): void;
  /** The stream that was to bring the answer has ended; with an error when it was cut by us. */
  onStreamEnded(failure: ToolFailure | null): void;
}

/** The `fetch` that all tool servers are reached through. It follows no redirect by itself. */
export interface WatchedFetch {
  fetch(url: string | URL, init?: RequestInit): Promise<Response>;
  /** Does something whose requests are watched. The MCP client does not tell when a stream ends before its answer: this does. */
  watching<Result>(watch: RequestWatch, work: () => Promise<Result>): Promise<Result>;
  /** Does something whose requests are not, whoever begins it. */
  unwatched<Result>(work: () => Promise<Result>): Promise<Result>;
  close(): Promise<void>;
}

export function openWatchedFetch({ environment, nowMs }: { environment: Environment; nowMs: () => number }): WatchedFetch {
  const watches = new AsyncLocalStorage<RequestWatch | null>();
  const agent = new EnvHttpProxyAgent({
    httpProxy: environment['HTTP_PROXY'] ?? environment['http_proxy'] ?? '',
    httpsProxy: environment['HTTPS_PROXY'] ?? environment['https_proxy'] ?? '',
    noProxy: environment['NO_PROXY'] ?? environment['no_proxy'] ?? '',
    connect: { timeout: CONNECT_TIMEOUT_MS },
    connections: MAX_CONNECTIONS,
    // Every request has a time limit of its caller's; streams stand as long as they like.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  const dispatcher = agent.compose((dispatch) => (options, handler) => {
    const watch = watches.getStore();
    return dispatch(options, watch ? new TellingWhenSent(handler, watch) : handler);
  });

  async function fetch(url: string | URL, init: RequestInit = {}): Promise<Response> {
    const { method = 'GET', signal } = init;
    const headers = [...new Headers(init.headers)];
    const store = watches.getStore() ?? null;
    const watch = store !== null && isOfRequest(method, init.body, headers) ? store : null;
    const go = () =>
      send(url, {
        method,
        headers,
        redirect: 'manual',
        dispatcher,
        ...(typeof init.body === 'string' ? { body: init.body } : {}),
        ...(watch !== null ? { signal: watch.signal } : signal ? { signal } : {}),
      });
    const response = await (watch === null ? watches.run(null, go) : go());
    watch?.onRetryAfter(parseRetryAfter(response.headers.get('retry-after'), nowMs()));
    const { status, statusText } = response;
    if (response.body === null || BODILESS.has(status)) return new Response(null, { status, statusText, headers: [...response.headers] });
    const isStream = /^text\/event-stream\b/i.test(response.headers.get('content-type') ?? '');
    if (isStream && response.ok) watch?.onStreamOpened();
    const body = limited(response.body, watch?.budget ?? new ByteBudget(MAX_ANSWER_BYTES), (failure) => {
      if (isStream && response.ok) watch?.onStreamEnded(failure);
    });
    return new Response(body, { status, statusText, headers: [...response.headers] });
  }

  return {
    fetch,
    watching: (watch, work) => watches.run(watch, work),
    unwatched: (work) => watches.run(null, work),
    close: () => agent.destroy(),
  };
}

class TellingWhenSent extends DecoratorHandler implements Dispatcher.DispatchHandler {
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

/** A request that awaits an answer, or the resumption of its stream; not a notification, nor a cancellation that follows it. */
function isOfRequest(method: string, body: unknown, headers: readonly [string, string][]): boolean {
  if (method === 'GET') return headers.some(([name]) => name === 'last-event-id');
  if (method !== 'POST' || typeof body !== 'string') return false;
  const message: unknown = JSON.parse(body);
  return typeof message === 'object' && message !== null && 'id' in message && 'method' in message;
}

/** The body up to a limit. Tells how it ended, once. */
function limited(body: ReadableStream<Uint8Array>, budget: ByteBudget, onEnd: (failure: ToolFailure | null) => void): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { value, done } = await reader.read();
        if (done) {
          controller.close();
          return onEnd(null);
        }
        budget.use(value.byteLength);
        controller.enqueue(value);
      } catch (error) {
        controller.error(error);
        reader.cancel(error).catch(() => {});
        onEnd(error instanceof ToolFailure ? error : null);
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}
