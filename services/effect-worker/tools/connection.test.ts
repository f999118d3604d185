import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { openHandMadeServer, type RpcMessage } from '../test-support/tool-server-doubles.ts';
import { openConnection } from './connection.ts';
import { openWatchedFetch } from './watched-fetch.ts';

const LIMITS = { signal: new AbortController().signal, timeoutMs: 10_000, longestMs: 10_000 };
const GREETING = { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'streaming', version: '1' } };
const anyTool = z.object({ tools: z.array(z.unknown()) });

const closing: (() => Promise<unknown>)[] = [];
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(async () => {
  vi.useRealTimers();
  for (const close of closing.splice(0)) await close();
});

/** Responds with an event stream that holds the result and ends. */
function stream(response: ServerResponse, { id }: RpcMessage, result: unknown, fields = ''): undefined {
  const answer = result === undefined ? '' : `data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`;
  response.writeHead(200, { 'content-type': 'text/event-stream' }).end(`${fields}${answer}`);
}

async function connect(list: (message: RpcMessage, response: ServerResponse) => undefined, onInitialized = () => {}) {
  const double = await openHandMadeServer(
    (message, response) => (message.method === 'initialize' ? stream(response, message, GREETING) : list(message, response)),
    { onNotification: onInitialized },
  );
  const fetcher = openWatchedFetch({ environment: {}, nowMs: () => 0 });
  closing.push(
    () => fetcher.close(),
    () => double.close(),
  );
  const url = new URL(`http://127.0.0.1:${double.port}/mcp`);
  const connection = await openConnection({ url, bearer: null, fetcher, era: { kind: 'legacy' }, onListChanged: () => {} });
  return { list: () => connection.request('tools/list', {}, anyTool, LIMITS) };
}

/** Keeps the process from its event loop until timers of that time are due. */
const pause = (ms: number) => vi.advanceTimersByTime(ms);

describe('a connection to a tool server that answers with event streams', () => {
  it('is opened though the server takes seconds for what follows the end of a stream', async () => {
    const { list } = await connect(
      (message, response) => stream(response, message, { tools: [] }),
      () => pause(9_000),
    );

    expect(await list()).toEqual({ tools: [] });
  });

  it('is lost at once for a request whose stream ends without its answer', async () => {
    const { list } = await connect((message, response) => stream(response, message, undefined));

    await expect(list()).rejects.toMatchObject({ kind: 'lost' });
  });

  it('is lost at once for a request whose stream ends without its answer after a ping', async () => {
    const ping = `data: ${JSON.stringify({ jsonrpc: '2.0', id: 'ping', method: 'ping' })}\n\n`;
    const { list } = await connect((message, response) => stream(response, message, undefined, ping));

    await expect(list()).rejects.toMatchObject({ kind: 'lost' });
  });

  it('is lost at once for a request whose answer the client can not read', async () => {
    const { list } = await connect((message, response) => stream(response, message, 'no object'));

    await expect(list()).rejects.toMatchObject({ kind: 'lost' });
  });

  it.each(['', `: ${'-'.repeat(80_000)}\n\n`])('gives the answer that had arrived when the process could read on behind the limit (%#)', async (comment) => {
    const { list } = await connect((message, response) => {
      stream(response, message, { tools: [] }, comment);
      // Timers are due before the client reads its socket.
      setImmediate(() => pause(10_000));
    });

    expect(await list()).toEqual({ tools: [] });
  });

  it('is late without an answer', async () => {
    const { list } = await connect(() => void setImmediate(() => pause(10_000)) as undefined);

    await expect(list()).rejects.toMatchObject({ kind: 'timeout' });
  });
});

describe('a connection to a tool server that answers with JSON', () => {
  const json = (response: ServerResponse, body: unknown): undefined =>
    void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body)) as undefined;
  const answer = ({ id }: RpcMessage) => ({ jsonrpc: '2.0', id, result: { tools: [] } });

  it.each<[string, (message: RpcMessage, response: ServerResponse) => undefined]>([
    ['is an empty list', (_, response) => json(response, [])],
    ['is a list of other messages', (_, response) => json(response, [{ jsonrpc: '2.0', method: 'notifications/progress' }])],
    ['answers another request', (message, response) => json(response, { ...answer(message), id: 'another' })],
    ['is 202 without a body', (_, response) => void response.writeHead(202).end() as undefined],
    ['is 202 with an event stream', (_, response) => void response.writeHead(202, { 'content-type': 'text/event-stream' }).end(': nothing\n\n') as undefined],
  ])('has a failed request at once where the response %s', async (_, list) => {
    const { list: asked } = await connect(list);

    await expect(asked()).rejects.toMatchObject({ kind: 'lost', message: 'the response of the tool server holds no answer', sent: true });
  });

  it.each<[string, (message: RpcMessage) => unknown]>([
    ['by itself', answer],
    ['in a list', (message) => [answer(message)]],
  ])('takes the answer %s', async (_, body) => {
    const { list } = await connect((message, response) => json(response, body(message)));

    expect(await list()).toEqual({ tools: [] });
  });
});
