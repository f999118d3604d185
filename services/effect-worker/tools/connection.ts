import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import { ToolFailure } from './tool-failure.ts';
import { handshakeFailureOf, toolFailureOf } from './tool-failure-of.ts';
import { type RequestLimits, watchRequest } from './watch-request.ts';
import type { WatchedFetch } from './watched-fetch.ts';

const CLIENT = { name: 'switchyard', version: '0.1.0' };
/** The handshake, from the connection to the answer. */
const OPEN_TIMEOUT_MS = 10_000;
/** To say goodbye; a server that is gone does not hear it. */
const CLOSE_TIMEOUT_MS = 1_000;
/** The client's own limit is never reached: ours come first, and know what for. */
const NEVER_MS = 2_147_483_647;

/** Aborts nothing. */
const NEVER = new AbortController().signal;
/** What the client takes for a server that offers no standing stream. */
const NO_STREAM = 405;

/** Answers are checked where they are used: the client's own schemas refuse a whole list because of one tool. */
const anyResult = z.looseObject({});

/** An open session with one tool server, for any number of requests at once. */
export interface Connection {
  /** @throws ToolFailure, and nothing else */
  request<Answer>(method: string, params: Record<string, unknown>, response: z.ZodType<Answer>, limits: RequestLimits): Promise<Answer>;
  /** Ends requests under way as `stopped`, says goodbye to the server and closes. Never rejects. */
  close(): Promise<void>;
}

interface OpenOptions {
  url: URL;
  /** Null: requests go out without a key. */
  bearer: string | null;
  fetcher: WatchedFetch;
  /** The server says that its tools are not what they were. */
  onListChanged(): void;
}

/** @throws ToolFailure: nothing but the handshake can have happened */
export async function openConnection({ url, bearer, fetcher, onListChanged }: OpenOptions): Promise<Connection> {
  const headers: Record<string, string> = bearer === null ? {} : { authorization: `Bearer ${bearer}` };
  // A server whose stream was ended for what it brought is not asked for another: the client would do so each second.
  let isCut = false;
  const onCut = () => {
    isCut = true;
  };
  const fetch: WatchedFetch['fetch'] = async (to, init) =>
    isCut && (init?.method ?? 'GET') === 'GET' ? new Response(null, { status: NO_STREAM }) : fetcher.fetch(to, init, onCut);
  const transport = new StreamableHTTPClientTransport(url, { fetch, requestInit: { headers } });
  const client = new Client(CLIENT, { capabilities: {} });
  client.setNotificationHandler(ToolListChangedNotificationSchema, onListChanged);
  // Errors of requests reach their callers; a standing stream that breaks off is only listened to.
  client.onerror = () => {};
  const inFlight = new Set<(failure: ToolFailure) => void>();
  const handshake = watchRequest({ signal: NEVER, timeoutMs: OPEN_TIMEOUT_MS, longestMs: OPEN_TIMEOUT_MS });
  try {
    await fetcher.watching(handshake.watch, () => client.connect(transport, { signal: handshake.watch.signal, timeout: NEVER_MS })); // no fail point: requests
  } catch (error) {
    await client.close().catch(() => {}); // no fail point: stops
    throw handshakeFailureOf(handshake.failure() ?? error);
  } finally {
    handshake.stop();
  }
  return {
    async request(method, params, response, limits) {
      const { watch, progress, failure, fail, onProgress, onResumable, stop } = watchRequest(limits);
      inFlight.add(fail);
      try {
        const options = { signal: watch.signal, timeout: NEVER_MS, onprogress: onProgress, onresumptiontoken: onResumable };
        return response.parse(await fetcher.watching(watch, () => client.request({ method, params }, anyResult, options))); // no fail point: caller
      } catch (error) {
        throw failure() ?? toolFailureOf(error, progress);
      } finally {
        inFlight.delete(fail);
        stop();
      }
    },
    async close() {
      for (const fail of [...inFlight]) fail(new ToolFailure('stopped', 'the connection was closed', { sent: true }));
      const goodbye = transport.terminateSession().catch(() => {});
      await Promise.race([goodbye, new Promise((resolve) => setTimeout(resolve, CLOSE_TIMEOUT_MS).unref())]); // no fail point: stops (2)
      await client.close().catch(() => {});
    },
  };
}
