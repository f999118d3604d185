import { createServer, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type HttpClient, type HttpResponse, openHttpClient } from './client.ts';

/** For what the system does in its own time; a machine may be busy. */
const WAIT = { timeout: 10_000 };

describe('openHttpClient', () => {
  let server: Server;
  let client: HttpClient;
  let answer: (response: ServerResponse, url: string) => void;
  let connections = 0;
  let open = 0;

  beforeEach(async () => {
    connections = 0;
    server = createServer((request, response) => answer(response, request.url ?? ''));
    server.on('connection', (socket) => {
      connections += 1;
      open += 1;
      socket.on('close', () => {
        open -= 1;
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    client = openHttpClient({ baseUrl: `http://127.0.0.1:${port}/v1beta/?api-version=1`, connectTimeoutMs: 1_000, maxConnections: 1 });
  });

  afterEach(async () => {
    await client.close();
    await new Promise((resolve) => server.close(resolve));
    await vi.waitFor(() => expect(open).toBe(0), WAIT);
  });

  const post = (signal: AbortSignal = new AbortController().signal) => client.post('/x', { headers: {}, body: '{}', signal });
  const firstChunk = async (response: HttpResponse) => {
    for await (const chunk of response.chunks) return Buffer.from(chunk).toString();
    return null;
  };

  it('rejects at once when the signal aborts before there is an answer, and closes the connection', async () => {
    const arrived = new Promise<ServerResponse>((resolve) => {
      answer = resolve;
    });
    const controller = new AbortController();
    const posted = post(controller.signal);
    const { socket } = await arrived;
    controller.abort(new Error('left'));
    await expect(posted).rejects.toThrow('left');
    await vi.waitFor(() => expect(socket?.destroyed).toBe(true), WAIT);
  });

  it('rejects at once when the signal aborts while the request waits for a connection', async () => {
    answer = (response) => response.write('a');
    const first = await post();
    const controller = new AbortController();
    const waiting = post(controller.signal);
    controller.abort(new Error('left'));
    await expect(waiting).rejects.toThrow('left');
    first.destroy();
  });

  it('closes a connection that is still being made when the signal of its request aborts, and no other', async () => {
    // Who expects TLS waits for a handshake that never comes.
    const sockets: Socket[] = [];
    const deaf = createTcpServer((socket) => sockets.push(socket.resume().on('error', () => {})));
    await new Promise<void>((resolve) => deaf.listen(0, '127.0.0.1', resolve));
    const { port } = deaf.address() as AddressInfo;
    const secure = openHttpClient({ baseUrl: `https://127.0.0.1:${port}`, connectTimeoutMs: 60_000, maxConnections: 2 });
    const [stays, leaves] = [new AbortController(), new AbortController()];
    const waiting = secure.post('/x', { headers: {}, body: '{}', signal: stays.signal });
    await vi.waitFor(() => expect(sockets).toHaveLength(1), WAIT);
    const left = secure.post('/x', { headers: {}, body: '{}', signal: leaves.signal });
    await vi.waitFor(() => expect(sockets).toHaveLength(2), WAIT);
    leaves.abort(new Error('left'));
    await expect(left).rejects.toThrow('left');
    await vi.waitFor(() => expect(sockets.map(({ destroyed }) => destroyed)).toEqual([false, true]), WAIT);
    stays.abort(new Error('left too'));
    await expect(waiting).rejects.toThrow('left too');
    await vi.waitFor(() => expect(sockets[0]?.destroyed).toBe(true), WAIT);
    await secure.close();
    await new Promise((resolve) => deaf.close(resolve));
  });

  it('throws the reason of an abort in the middle of the body', async () => {
    let socket: Socket | null = null;
    answer = (response) => {
      socket = response.socket;
      response.write('a');
    };
    const controller = new AbortController();
    const response = await post(controller.signal);
    const chunks = response.chunks[Symbol.asyncIterator]();
    expect(Buffer.from((await chunks.next()).value).toString()).toBe('a');
    controller.abort(new Error('left'));
    await expect(chunks.next()).rejects.toThrow('left');
    await vi.waitFor(() => expect(socket?.destroyed).toBe(true), WAIT);
  });

  it('keeps the path and the query of the base', async () => {
    answer = (response, url) => response.end(url);
    expect(await firstChunk(await post())).toBe('/v1beta/x?api-version=1');
  });

  it('sends the body whole, and its size in advance', async () => {
    let arrived: { size: string | undefined; encoding: string | undefined; text: string } | null = null;
    server.removeAllListeners('request');
    server.on('request', async (request, response) => {
      const { 'content-length': size, 'transfer-encoding': encoding } = request.headers;
      let text = '';
      for await (const piece of request.setEncoding('utf8')) text += piece;
      arrived = { size, encoding, text };
      response.end('a');
    });
    const body = 'ä€'.repeat(400_000);
    const response = await client.post('/x', { headers: {}, body, signal: new AbortController().signal });
    expect(await firstChunk(response)).toBe('a');
    expect(arrived).toEqual({ size: String(Buffer.byteLength(body)), encoding: undefined, text: body });
    response.destroy();
  });

  it('uses a connection again after a release, and not after a destroy', async () => {
    answer = (response) => {
      response.write('a');
      setTimeout(() => response.end('b'), 20);
    };
    for (const ending of ['release', 'release', 'destroy'] as const) {
      const response = await post();
      expect(await firstChunk(response)).toBe('a');
      response[ending]();
    }
    expect(connections).toBe(1);
    (await post()).destroy();
    expect(connections).toBe(2);
  });
});
