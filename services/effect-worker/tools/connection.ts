import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import { ToolFailure } from './tool-failure.ts';
import { handshakeFailureOf, toolFailureOf } from './tool-failure-of.ts';
import { type RequestLimits, watchRequest } from './watch-request.ts';
import type { WatchedFetch } from './watched-fetch.ts';

const CLIENT = { name: 'switchyard', version: '0.1.0' };
/** Covers connecting and the handshake. */
const OPEN_TIMEOUT_MS = 10_000;
/** Session termination; an unreachable server does not answer. */
const CLOSE_TIMEOUT_MS = 1_000;
/** Disables the client's own timeout: those of `watchRequest` know why they end a request. */
const NEVER_MS = 2_147_483_647;

const NEVER = new AbortController().signal;
/** The client's code for a server without a standing stream. */
const NO_STREAM = 405;

/** Responses are validated where they are used: the client's schemas refuse a whole list because of one tool. */
const anyResult = z.looseObject({});

/** An MCP session with one tool server; requests may run concurrently. */
export interface Connection {
  /** @throws ToolFailure, and nothing else */
  request<Answer>(method: string, params: Record<string, unknown>, response: z.ZodType<Answer>, limits: RequestLimits): Promise<Answer>;
  /** Fails requests in flight as `stopped`. Never rejects. */
  close(): Promise<void>;
}

interface OpenOptions {
  url: URL;
  bearer: string | null;
  fetcher: WatchedFetch;
  onListChanged(): void;
}

/** @throws ToolFailure; nothing but the handshake can have been sent */
export async function openConnection({ url, bearer, fetcher, onListChanged }: OpenOptions): Promise<Connection> {
  const headers: Record<string, string> = bearer === null ? {} : { authorization: `Bearer ${bearer}` };
  // After we cut the standing stream no other is opened: the client would reconnect every second.
  let isCut = false;
  const onCut = () => {
    isCut = true;
  };
  const fetch: WatchedFetch['fetch'] = async (to, init) =>
    isCut && (init?.method ?? 'GET') === 'GET' ? new Response(null, { status: NO_STREAM }) : fetcher.fetch(to, init, onCut);
  const transport = new StreamableHTTPClientTransport(url, { fetch, requestInit: { headers } });
  const client = new Client(CLIENT, { capabilities: {} });
  client.setNotificationHandler(ToolListChangedNotificationSchema, onListChanged);
  // Requests report their own errors; a broken standing stream needs no handling.
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
      const termination = transport.terminateSession().catch(() => {});
      await Promise.race([termination, new Promise((resolve) => setTimeout(resolve, CLOSE_TIMEOUT_MS).unref())]); // no fail point: stops (2)
      await client.close().catch(() => {});
    },
  };
}
