import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { HttpClient, HttpExchange } from './client.ts';
import { openOutbound } from './outbound.ts';

/** For asynchronous effects of the system; the machine may be busy. */
const WAIT = { timeout: 60_000 };

describe('a client of one server', () => {
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
    client = openOutbound({}).openClient({ baseUrl: `http://127.0.0.1:${port}/v1beta/?api-version=1`, connectTimeoutMs: 1_000, maxConnections: 1 });
  });

  afterEach(async () => {
    await client.close();
    await new Promise((resolve) => server.close(resolve));
    await vi.waitFor(() => expect(open).toBe(0), WAIT);
  });

  const post = () => client.post('/x', { headers: {}, body: '{}' });
  /** Collects the body's pieces, and how the reading ends. */
  const reading = (exchange: HttpExchange, wantsMore: () => boolean) => {
    let received = '';
    const ended = exchange.begun().then(() =>
      exchange.read((piece) => {
        received += Buffer.from(piece).toString();
        return wantsMore();
      }),
    );
    return { received: () => received, ended };
  };
  const firstRead = async (exchange: HttpExchange) => {
    const { received, ended } = reading(exchange, () => false);
    expect(await ended).toBe(false);
    return received();
  };
  const left = new Error('left');

  it('rejects at once when it is aborted before there is an answer, and closes the connection', async () => {
    const arrived = new Promise<ServerResponse>((resolve) => {
      answer = resolve;
    });
    const posted = post();
    const { socket } = await arrived;
    posted.abort(left);
    await expect(posted.begun()).rejects.toBe(left);
    await vi.waitFor(() => expect(socket?.destroyed).toBe(true), WAIT);
  });

  it('rejects at once when it is aborted while the request waits for a connection, and is not sent', async () => {
    answer = (response) => response.write('a');
    const first = post();
    await first.begun();
    const waiting = post();
    waiting.abort(left);
    await expect(waiting.begun()).rejects.toBe(left);
    const arrived = vi.fn();
    answer = (response, url) => {
      arrived(url);
      response.end('b');
    };
    first.abort(left);
    expect(await firstRead(post())).toBe('b');
    expect(arrived).toHaveBeenCalledTimes(1);
  });

  it('closes a connection that is still being made when its request is aborted, and no other', async () => {
    // A TLS client waits here for a handshake that never comes.
    const sockets: Socket[] = [];
    const deaf = createTcpServer((socket) => sockets.push(socket.resume().on('error', () => {})));
    await new Promise<void>((resolve) => deaf.listen(0, '127.0.0.1', resolve));
    const { port } = deaf.address() as AddressInfo;
    const secure = openOutbound({}).openClient({ baseUrl: `https://127.0.0.1:${port}`, connectTimeoutMs: 60_000, maxConnections: 2 });
    const waits = secure.post('/x', { headers: {}, body: '{}' });
    await vi.waitFor(() => expect(sockets).toHaveLength(1), WAIT);
    const leaves = secure.post('/x', { headers: {}, body: '{}' });
    await vi.waitFor(() => expect(sockets).toHaveLength(2), WAIT);
    leaves.abort(left);
    await expect(leaves.begun()).rejects.toBe(left);
    await vi.waitFor(() => expect(sockets.map(({ destroyed }) => destroyed)).toEqual([false, true]), WAIT);
    waits.abort(new Error('left too'));
    await expect(waits.begun()).rejects.toThrow('left too');
    await vi.waitFor(() => expect(sockets[0]?.destroyed).toBe(true), WAIT);
    await secure.close();
    await new Promise((resolve) => deaf.close(resolve));
  });

  it('throws the reason of an abort in the middle of the body, and drops what has come', async () => {
    let socket: Socket | null = null;
    answer = (response) => {
      socket = response.socket;
      response.write('a');
    };
    const exchange = post();
    const { received, ended } = reading(exchange, () => true);
    await vi.waitFor(() => expect(received()).toBe('a'), WAIT);
    exchange.abort(left);
    await expect(ended).rejects.toBe(left);
    await vi.waitFor(() => expect(socket?.destroyed).toBe(true), WAIT);
  });

  it('yields what came before the connection broke, then throws', async () => {
    answer = (response) => response.write('a', () => response.socket?.destroy());
    const exchange = post();
    await exchange.begun();
    await vi.waitFor(() => expect(open).toBe(0), WAIT);
    const { received, ended } = reading(exchange, () => true);
    await expect(ended).rejects.toThrow('other side closed');
    expect(received()).toBe('a');
  });

  it('retains the path and the query of the base', async () => {
    answer = (response, url) => response.end(url);
    expect(await firstRead(post())).toBe('/v1beta/x?api-version=1');
  });

  it.each<[string, string | Uint8Array[]]>([
    ['small', 'ä€'],
    ['large', 'ä€'.repeat(400_000)],
    ['small divided', ['ä', '€'].map((part) => Buffer.from(part))],
    ['large divided', ['ä', '€'.repeat(400_000), 'ä'].map((part) => Buffer.from(part))],
  ])('sends a %s body whole, and its size in advance', async (_, body) => {
    const whole = typeof body === 'string' ? body : Buffer.concat(body).toString();
    let arrived: { size: string | undefined; encoding: string | undefined; text: string } | null = null;
    server.removeAllListeners('request');
    server.on('request', async (request, response) => {
      const { 'content-length': size, 'transfer-encoding': encoding } = request.headers;
      let text = '';
      for await (const piece of request.setEncoding('utf8')) text += piece;
      arrived = { size, encoding, text };
      response.end('a');
    });
    const exchange = client.post('/x', { headers: {}, body });
    expect(await firstRead(exchange)).toBe('a');
    expect(arrived).toEqual({ size: String(Buffer.byteLength(whole)), encoding: undefined, text: whole });
    exchange.release();
  });

  it('holds of a short body no more than its bytes while the response is awaited', async () => {
    setFlagsFromString('--expose-gc');
    const collect: () => void = runInNewContext('gc');
    const held = () => {
      collect();
      return process.memoryUsage().arrayBuffers;
    };
    answer = () => {};
    const before = held();
    const posted = Array.from({ length: 500 }, () => {
      const exchange = post();
      // Moves the next body into another slice of Node's buffer pool.
      Buffer.allocUnsafe(Buffer.poolSize / 2 - 1);
      Buffer.allocUnsafe(Buffer.poolSize / 2 - 1);
      return exchange;
    });
    // V8 frees collected memory on a thread of its own, on a busy machine a little later.
    await vi.waitFor(() => expect((held() - before) / posted.length).toBeLessThan(1_024), WAIT);
    for (const exchange of posted) exchange.abort(left);
  });

  it('reuses a connection after a release, and not after an abort', async () => {
    answer = (response) => {
      response.write('a');
      setTimeout(() => response.end('b'), 20);
    };
    for (const ending of ['release', 'release', 'abort'] as const) {
      const exchange = post();
      expect(await firstRead(exchange)).toBe('a');
      exchange[ending](left);
    }
    expect(connections).toBe(1);
    const exchange = post();
    await exchange.begun();
    exchange.abort(left);
    expect(connections).toBe(2);
  });

  it('begins no connection for a request whose abort has closed its own', async () => {
    const begun = vi.fn();
    subscribe('net.client.socket', begun);
    onTestFinished(() => void unsubscribe('net.client.socket', begun));
    answer = (response) => response.write('a');
    const exchange = post();
    expect(await firstRead(exchange)).toBe('a');
    exchange.abort(left);
    await vi.waitFor(() => expect(open).toBe(0), WAIT);
    answer = (response) => response.end('b');
    await post().begun();
    expect(begun).toHaveBeenCalledTimes(2);
  });

  it('closes the connection of an abort with an error without frames, whose stack Node would format', async () => {
    const errors: Error[] = [];
    const follow = (message: unknown) => void (message as { socket: Socket }).socket.on('error', (error) => errors.push(error));
    subscribe('net.client.socket', follow);
    onTestFinished(() => void unsubscribe('net.client.socket', follow));
    answer = (response) => response.write('a');
    const exchange = post();
    await firstRead(exchange);
    exchange.abort(left);
    await vi.waitFor(() => expect(errors).toHaveLength(1), WAIT);
    expect(errors[0]?.stack).not.toContain('\n    at ');
    expect(new Error('a later one').stack).toContain('\n    at ');
  });

  it.each([
    ['too much', (response: ServerResponse) => response.write(Buffer.alloc(1024 * 1024))],
    ['too long in coming', () => {}],
  ])('closes a connection that is released while what is left is %s', async (_, goOn) => {
    const closed = new Promise<void>((resolve) => {
      answer = (response) => {
        response.on('close', resolve);
        response.write('a', () => goOn(response));
      };
    });
    const exchange = post();
    await firstRead(exchange);
    exchange.release();
    await closed;
  });
});
