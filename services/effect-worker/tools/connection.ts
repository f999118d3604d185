import { Client, type ConnectOptions, type JSONRPCMessage, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { z } from 'zod';
import { standListening } from './list-subscription.ts';
import { lostBeforeAnswer, ToolFailure, unanswered } from './tool-failure.ts';
import { handshakeFailureOf, toolFailureOf } from './tool-failure-of.ts';
import { type RequestLimits, type WatchedRequest, watchRequest } from './watch-request.ts';
import type { WatchedFetch } from './watched-fetch.ts';

const CLIENT = { name: 'switchyard', version: '0.1.0' };
/** Covers connecting, the probe and the handshake. */
const OPEN_TIMEOUT_MS = 10_000;
/** Session termination; an unreachable server does not answer. */
const CLOSE_TIMEOUT_MS = 1_000;
/** Disables the client's own timeout: those of `watchRequest` know why they end a request. */
const NEVER_MS = 2_147_483_647;

const NEVER = new AbortController().signal;
/** The client's code for a server without a standing stream. */
const NO_STREAM = 405;
/** The client checks the answers of the methods that it knows, and refuses a whole list because of one tool: it gets these names instead. */
const UNCHECKED = 'unchecked/';

/** Responses are validated where they are used. */
const anyResult = z.looseObject({});

/** How a server speaks: with sessions, up to 2025-11-25, or without, from 2026-07-28. What a probe has found out can be used again. */
export type ServerEra = NonNullable<ConnectOptions['prior']>;

interface RequestOptions extends RequestLimits {
  /** Beside the client's own. */
  headers?: Record<string, string>;
}

/** A connection with one tool server; requests may run concurrently. */
export interface Connection {
  readonly era: ServerEra;
  /** Of the protocol, as both sides have agreed; null: the client does not say. */
  readonly version: string | null;
  /** @throws ToolFailure, and nothing else */
  request<Answer>(method: string, params: Record<string, unknown>, response: z.ZodType<Answer>, options: RequestOptions): Promise<Answer>;
  /** Fails requests in flight as `stopped`. Never rejects. */
  close(): Promise<void>;
}

interface OpenOptions {
  url: URL;
  bearer: string | null;
  fetcher: WatchedFetch;
  /** Null: the server is probed. */
  era: ServerEra | null;
  onListChanged(): void;
}

/** @throws ToolFailure; nothing but the probe and the handshake can have been sent */
export async function openConnection({ url, bearer, fetcher, era, onListChanged }: OpenOptions): Promise<Connection> {
  const headers: Record<string, string> = bearer === null ? {} : { authorization: `Bearer ${bearer}` };
  // After we cut the standing stream no other is opened: the client would reconnect every second. Without sessions there is none at all.
  const cut = new AbortController();
  let hasGet = true;
  const fetch: WatchedFetch['fetch'] = async (to, init) =>
    (cut.signal.aborted || !hasGet) && (init?.method ?? 'GET') === 'GET'
      ? new Response(null, { status: NO_STREAM })
      : fetcher.fetch(to, init, () => cut.abort());
  const transport = new WatchedTransport(fetcher, url, {
    fetch,
    requestInit: { headers, redirect: 'manual' },
    // Refused at once without sessions: only then the client says that a stream has ended.
    reconnectionScheduler: (reconnect, delayMs) => {
      const timer = setTimeout(reconnect, hasGet ? delayMs : 0);
      return () => clearTimeout(timer);
    },
  });
  const client = new Client(CLIENT, {
    capabilities: {},
    versionNegotiation: { mode: 'auto', probe: { timeoutMs: OPEN_TIMEOUT_MS } },
    // No input is asked for here: the server's request is an error of the call.
    inputRequired: { autoFulfill: false },
  });
  client.setNotificationHandler('notifications/tools/list_changed', onListChanged);
  // Requests report their own errors; a broken standing stream needs no handling.
  client.onerror = () => {};
  const handshake = watchRequest({ signal: NEVER, timeoutMs: OPEN_TIMEOUT_MS, longestMs: OPEN_TIMEOUT_MS });
  const { signal } = handshake.watch;
  try {
    const prior = era === null ? {} : { prior: era };
    const connect = () => client.connect(transport, { signal, timeout: NEVER_MS, ...prior });
    await orFailed(handshake, fetcher.watching(handshake.watch, connect)); // no fail point: requests
  } catch (error) {
    await client.close().catch(() => {}); // no fail point: stops
    throw handshakeFailureOf(handshake.failure() ?? error);
  } finally {
    handshake.stop();
  }
  const discover = client.getDiscoverResult();
  const spoken: ServerEra = client.getProtocolEra() === 'modern' && discover !== undefined ? { kind: 'modern', discover } : { kind: 'legacy' };
  hasGet = spoken.kind === 'legacy';
  const listening =
    spoken.kind === 'modern' && client.getServerCapabilities()?.tools?.listChanged === true ? standListening({ client, cut: cut.signal, onListChanged }) : null;
  return connected(spoken, client, transport, fetcher, listening);
}

function connected(era: ServerEra, client: Client, transport: WatchedTransport, fetcher: WatchedFetch, listening: { stop(): void } | null): Connection {
  const inFlight = new Set<(failure: ToolFailure) => void>();
  return {
    era,
    version: client.getNegotiatedProtocolVersion() ?? null,
    async request(method, params, response, { headers, ...limits }) {
      const { watch, progress, failure, fail, onProgress, onResumable, stop } = watchRequest(limits);
      inFlight.add(fail);
      // Streams of the newer era can not be resumed, whatever ids their events have.
      const resuming = era.kind === 'legacy' ? { onresumptiontoken: onResumable } : {};
      const options = { signal: watch.signal, timeout: NEVER_MS, onprogress: onProgress, ...resuming, ...(headers === undefined ? {} : { headers }) };
      try {
        const request = () => client.request({ method: `${UNCHECKED}${method}`, params }, anyResult, options);
        return response.parse(await fetcher.watching(watch, request)); // no fail point: caller
      } catch (error) {
        throw failure() ?? toolFailureOf(error, progress);
      } finally {
        inFlight.delete(fail);
        stop();
      }
    },
    async close() {
      listening?.stop();
      for (const fail of [...inFlight]) fail(new ToolFailure('stopped', 'the connection was closed', { sent: true }));
      const termination = transport.terminateSession().catch(() => {});
      await Promise.race([termination, new Promise((resolve) => setTimeout(resolve, CLOSE_TIMEOUT_MS).unref())]); // no fail point: stops (2)
      await client.close().catch(() => {});
    },
  };
}

type SendOptions = Parameters<StreamableHTTPClientTransport['send']>[1];

/** Tells the watch of a request when the client has handled its response to the end: it waits on where the answer is not in it. */
class WatchedTransport extends StreamableHTTPClientTransport {
  readonly #fetcher: WatchedFetch;

  constructor(fetcher: WatchedFetch, ...own: ConstructorParameters<typeof StreamableHTTPClientTransport>) {
    super(...own);
    this.#fetcher = fetcher;
  }

  override async send(message: JSONRPCMessage | JSONRPCMessage[], options: SendOptions = {}): Promise<void> {
    // The client sends its response to a ping while it handles the stream of a request, which is not over by that.
    if (Array.isArray(message) || !('method' in message)) return super.send(message, options);
    const sent = message.method.startsWith(UNCHECKED) ? { ...message, method: message.method.slice(UNCHECKED.length) } : message;
    const watch = this.#fetcher.watch();
    if (watch === null || options.onRequestStreamEnd !== undefined) return super.send(sent, options);
    const onEnded = watch.onMessage();
    const { streams } = watch;
    await super.send(sent, { ...options, onRequestStreamEnd: () => onEnded(lostBeforeAnswer()) }); // no fail point: requests
    // The client has handled a response that was no stream.
    if ('id' in message && watch.streams === streams) onEnded(unanswered());
  }
}

/** The client's probe does not heed the signal of its handshake. */
function orFailed<Result>({ watch, failure }: WatchedRequest, work: Promise<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    watch.signal.addEventListener('abort', () => reject(failure()), { once: true });
    work.then(resolve, reject); // no fail point: waits
  });
}
