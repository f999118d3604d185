import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type GuardedPost, type GuardedPoster, openGuardedPoster } from './guarded-post.ts';
import type { NameLookup } from './name-lookup.ts';
import { parseAllowHosts } from './outbound-guard.ts';

/** For asynchronous effects of the system; the machine may be busy. */
const WAIT = { timeout: 60_000 };

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** A receiver on loopback that counts its connections; closing it destroys them, since some tests leave them open. */
async function listen(server: Server) {
  const sockets: Socket[] = [];
  server.on('connection', (socket: Socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  return { port: (server.address() as AddressInfo).port, sockets };
}

const listenHttp = (answer: (response: ServerResponse, request: IncomingMessage) => void) =>
  listen(createHttpServer((request, response) => answer(response, request)));
const listenTcp = (onConnection: (socket: Socket) => void) => listen(createServer(onConnection));

function openPoster(allowHosts: string, options: { lookup?: NameLookup; connectTimeoutMs?: number } = {}): GuardedPoster {
  const poster = openGuardedPoster({ rules: { allowHosts: parseAllowHosts(allowHosts) }, ...options });
  closers.push(() => poster.close());
  return poster;
}

const requestTo = (url: string, more: Partial<GuardedPost> = {}): GuardedPost => ({
  url,
  hostAllowlist: null,
  headers: { 'content-type': 'application/json' },
  body: Buffer.from('{"a":1}'),
  ...more,
});
const failed = (reason: string) => expect.objectContaining({ code: 'outbound.failed', details: expect.objectContaining({ reason }) });
const refused = (reason: string) => expect.objectContaining({ code: 'outbound.refused', details: { reason } });

describe('a guarded post that must not arrive', () => {
  it('DESIGN 11: a guarded post is refused for a port next to the excepted one, without a connection', async () => {
    const { port, sockets } = await listenHttp((response) => response.end());
    const poster = openPoster(`127.0.0.1:${port === 65_535 ? 1 : port + 1}`);
    await expect(poster.post(requestTo(`http://127.0.0.1:${port}/`))).rejects.toEqual(refused('scheme_not_allowed'));
    await expect(poster.post(requestTo(`https://127.0.0.1:${port}/`))).rejects.toEqual(refused('ip_literal'));
    await expect(poster.post(requestTo(`https://127.0.0.1:${port}/`, { hostAllowlist: ['127.0.0.1'] }))).rejects.toEqual(refused('address_not_public'));
    expect(sockets).toHaveLength(0);
  });

  it('DESIGN 11: a guarded post is refused when the name resolves to a private address at the attempt', async () => {
    const { port, sockets } = await listenTcp((socket) => socket.end());
    const answers = [['127.0.0.1'], ['8.8.8.8', '127.0.0.1'], ['8.8.8.8', '::ffff:127.0.0.1'], ['8.8.8.8', 'localhost']];
    const poster = openPoster('', { lookup: async () => answers.shift() ?? [] });
    for (let attempt = answers.length; attempt > 0; attempt -= 1) {
      await expect(poster.post(requestTo(`https://hooks.example:${port}/`))).rejects.toEqual(refused('address_not_public'));
    }
    expect(answers).toEqual([]);
    expect(sockets).toHaveLength(0);
  });

  it('DESIGN 11: a guarded post resolves the name once per attempt, and connects to that result', async () => {
    const { port, sockets } = await listenHttp((response) => response.end());
    const answers = [['127.0.0.1'], []];
    const poster = openPoster(`receiver.test:${port}`, { lookup: async () => answers.shift() ?? ['127.0.0.1'] });
    expect((await poster.post(requestTo(`http://receiver.test:${port}/`))).status).toBe(200);
    await expect(poster.post(requestTo(`http://receiver.test:${port}/`))).rejects.toEqual(failed('not_connected'));
    expect(answers).toEqual([]);
    expect(sockets).toHaveLength(1);
  });

  it.each([301, 302, 303, 307, 308])('does not follow a redirect with status %d', async (status) => {
    const inner = await listenHttp((response) => response.end());
    const outer = await listenHttp((response) => response.writeHead(status, { location: `http://127.0.0.1:${inner.port}/` }).end());
    // Even an address in OUTBOUND_ALLOW_HOSTS is not reached by a redirect.
    const poster = openPoster(`127.0.0.1:${outer.port},127.0.0.1:${inner.port}`);
    expect(await poster.post(requestTo(`http://127.0.0.1:${outer.port}/`))).toEqual({ status, retryAfterMs: null });
    expect(inner.sockets).toHaveLength(0);
  });

  it('fails when the name can not be resolved, or has no address', async () => {
    const nothing = Object.assign(new Error('queryA ENOTFOUND hooks.example'), { code: 'ENOTFOUND' });
    const unknown = openPoster('', { lookup: () => Promise.reject(nothing) });
    await expect(unknown.post(requestTo('https://hooks.example/?hunter2'))).rejects.toMatchObject({
      code: 'outbound.failed',
      message: 'the name of the receiver could not be resolved (hooks.example)',
      details: { reason: 'name_not_resolved', networkCode: 'ENOTFOUND' },
      cause: undefined,
    });
    const empty = openPoster('', { lookup: async () => [] });
    await expect(empty.post(requestTo('https://hooks.example/'))).rejects.toEqual(failed('not_connected'));
  });

  it('fails at a closed port', async () => {
    const { port } = await listenTcp(() => {});
    await closers.pop()?.();
    await expect(openPoster(`127.0.0.1:${port}`).post(requestTo(`http://127.0.0.1:${port}/`))).rejects.toMatchObject({
      code: 'outbound.failed',
      details: { reason: 'not_connected', networkCode: 'ECONNREFUSED' },
    });
  });
});

describe('a guarded post to a receiver that misbehaves', () => {
  const HEAD = 'HTTP/1.1 200 OK\r\n';

  it.each<[string, (socket: Socket) => void]>([
    ['never answers', () => {}],
    ['begins its answer and falls silent', (socket) => socket.write(HEAD)],
    ['drips headers without end', (socket) => drip(socket, HEAD, () => `x-${Math.random()}: 1\r\n`)],
    ['drips informational answers without end', (socket) => drip(socket, '', () => 'HTTP/1.1 103 Early Hints\r\n\r\n')],
  ])('ends in time when it %s', async (_what, behave) => {
    const { port, sockets } = await listenTcp((socket) => socket.once('data', () => behave(socket)));
    const poster = openPoster(`127.0.0.1:${port}`);
    await expect(poster.post(requestTo(`http://127.0.0.1:${port}/?hunter2`, { timeoutMs: 200 }))).rejects.toMatchObject({
      code: 'outbound.failed',
      message: `the receiver did not answer in time (127.0.0.1:${port})`,
      details: { reason: 'timeout', networkCode: null },
    });
    await vi.waitFor(() => expect(sockets.map((socket) => socket.destroyed)).toEqual([true]), WAIT);
  });

  it('ends in time when the name server is silent', async () => {
    const poster = openPoster('', { lookup: () => new Promise(() => {}) });
    await expect(poster.post(requestTo('https://hooks.example/', { timeoutMs: 50 }))).rejects.toEqual(failed('timeout'));
  });

  it.each<[string, (socket: Socket) => void]>([
    ['closes at once', (socket) => socket.end()],
    ['breaks the connection', (socket) => socket.resetAndDestroy()],
    ['closes in the middle of its headers', (socket) => socket.end(HEAD)],
    ['speaks another protocol', (socket) => socket.end('SSH-2.0-hunter2\r\n')],
    ['changes the protocol', (socket) => socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: hunter2\r\nconnection: upgrade\r\n\r\n')],
    ['sends more headers than anyone reads', (socket) => socket.write(`${HEAD}x: ${'hunter2'.repeat(5_000)}\r\n\r\n`)],
  ])('fails after one connection when it %s, and repeats nothing it said', async (_what, behave) => {
    const { port, sockets } = await listenTcp((socket) => socket.once('data', () => behave(socket)));
    const posted = openPoster(`127.0.0.1:${port}`).post(requestTo(`http://127.0.0.1:${port}/hunter2?hunter2`));
    const error = await posted.catch((caught: unknown) => caught);
    expect(error).toEqual(failed('no_answer'));
    expect(error).toMatchObject({ message: `the receiver gave no complete answer (127.0.0.1:${port})`, cause: undefined });
    expect(JSON.stringify(error)).not.toContain('hunter2');
    expect(sockets).toHaveLength(1);
  });

  it('accepts a response whose body never ends, and reads only its beginning', async () => {
    const { port, sockets } = await listenTcp((socket) => {
      socket.once('data', () => drip(socket, `${HEAD}transfer-encoding: chunked\r\n\r\n`, () => '1\r\na\r\n'));
    });
    const poster = openPoster(`127.0.0.1:${port}`);
    expect(await poster.post(requestTo(`http://127.0.0.1:${port}/`, { timeoutMs: 1_500 }))).toEqual({ status: 200, retryAfterMs: null });
    expect(await poster.post(requestTo(`http://127.0.0.1:${port}/`))).toEqual({ status: 200, retryAfterMs: null });
    await vi.waitFor(() => expect(sockets.map((socket) => socket.destroyed)).toEqual([true, true]), WAIT);
  });

  // 10 MB would fit into the system's socket buffers, so nothing would show whether they were read.
  const SIZE = 64 * 1024 * 1024;
  it.each([
    ['with a length', `content-length: ${SIZE}\r\n\r\n`],
    ['without a length', '\r\n'],
  ])('does not read a body of 64 MB %s', async (_what, rest) => {
    const chunk = Buffer.alloc(64 * 1024);
    let sent = 0;
    function* body() {
      for (; sent < SIZE; sent += chunk.length) yield chunk;
    }
    const { port, sockets } = await listenTcp((socket) => {
      socket.once('data', () => {
        socket.write(`${HEAD}${rest}`);
        Readable.from(body()).pipe(socket);
      });
    });
    expect((await openPoster(`127.0.0.1:${port}`).post(requestTo(`http://127.0.0.1:${port}/`))).status).toBe(200);
    await vi.waitFor(() => expect(sockets.map((socket) => socket.destroyed)).toEqual([true]), WAIT);
    expect(sent).toBeLessThan(SIZE);
  });

  it('ends at once with the reason of its caller, in whatever state it is', async () => {
    let arrive = () => {};
    const arrived = new Promise<void>((resolve) => {
      arrive = resolve;
    });
    const { port } = await listenTcp((socket) => socket.once('data', () => arrive()));
    const poster = openPoster(`127.0.0.1:${port}`, { lookup: () => new Promise(() => {}) });
    const controller = new AbortController();
    const { signal } = controller;
    const waiting = [requestTo(`http://127.0.0.1:${port}/`, { signal }), requestTo('https://hooks.example/', { signal })].map((request) =>
      poster.post(request),
    );
    const ended = Promise.allSettled(waiting);
    await arrived;
    controller.abort(new Error('left'));
    expect(await ended).toMatchObject([{ reason: { message: 'left' } }, { reason: { message: 'left' } }]);
    await expect(poster.post(requestTo(`http://127.0.0.1:${port}/`, { signal }))).rejects.toThrow('left');
  });

  it('ends when the poster closes, and none begins after that', async () => {
    let arrive = () => {};
    const arrived = new Promise<void>((resolve) => {
      arrive = resolve;
    });
    const { port, sockets } = await listenTcp((socket) => socket.once('data', () => arrive()));
    const poster = openPoster(`127.0.0.1:${port}`);
    const posted = poster.post(requestTo(`http://127.0.0.1:${port}/`)).catch((error: unknown) => error);
    await arrived;
    await poster.close();
    expect(await posted).toEqual(failed('closed'));
    await expect(poster.post(requestTo(`http://127.0.0.1:${port}/`))).rejects.toEqual(failed('closed'));
    await vi.waitFor(() => expect(sockets.map((socket) => socket.destroyed)).toEqual([true]), WAIT);
  });
});

describe('a guarded post that arrives', () => {
  it('sends headers, body, path and query, and no fragment, on a separate connection', async () => {
    const seen: unknown[] = [];
    const { port, sockets } = await listenHttp((response, request) => {
      let body = '';
      request.on('data', (chunk) => {
        body += chunk;
      });
      request.on('end', () => {
        seen.push([request.method, request.url, request.headers, body]);
        response.writeHead(201).end('thanks');
      });
    });
    const poster = openPoster(`127.0.0.1:${port}`);
    const request = requestTo(`http://127.0.0.1:${port}/hook?x=1#y`, { headers: { authorization: 'Bearer k', 'x-run-id': 'run_1' } });
    expect(await poster.post(request)).toEqual({ status: 201, retryAfterMs: null });
    expect(await poster.post(request)).toEqual({ status: 201, retryAfterMs: null });
    const headers = { host: `127.0.0.1:${port}`, authorization: 'Bearer k', 'x-run-id': 'run_1', 'content-length': '7', connection: 'close' };
    expect(seen).toEqual([
      ['POST', '/hook?x=1', headers, '{"a":1}'],
      ['POST', '/hook?x=1', headers, '{"a":1}'],
    ]);
    expect(sockets).toHaveLength(2);
    await vi.waitFor(() => expect(sockets.every((socket) => socket.destroyed)).toBe(true), WAIT);
  });

  it('tries the next address of a name when the first refuses the connection', async () => {
    const { port } = await listenHttp((response) => response.end());
    const poster = openPoster(`receiver.test:${port}`, { lookup: async () => ['127.0.0.3', '127.0.0.1'] });
    expect((await poster.post(requestTo(`http://receiver.test:${port}/`))).status).toBe(200);
  });

  it.each([
    ['a 100', ['HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n']],
    [
      'several, in pieces',
      [...'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.0 204 No Content\r\n\r\n'],
    ],
    ['as many as are allowed', ['HTTP/1.1 100 Continue\r\n\r\n'.repeat(16), 'HTTP/1.1 204 No Content\r\n\r\n']],
  ])('skips interim responses: %s', async (_case, pieces) => {
    const { port } = await listenTcp((socket) => {
      socket.setNoDelay(true);
      socket.once('data', () => {
        const write = ([piece, ...rest]: string[]) => {
          if (piece !== undefined) socket.write(piece, () => setImmediate(write, rest));
        };
        write(pieces);
      });
    });
    expect(await openPoster(`127.0.0.1:${port}`).post(requestTo(`http://127.0.0.1:${port}/`))).toEqual({ status: 204, retryAfterMs: null });
  });

  it.each([
    ['too many', 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(17)],
    ['several that are too large together', `HTTP/1.1 100 Continue\r\nx: ${'x'.repeat(9_000)}\r\n\r\nHTTP/1.1 100 Continue\r\nx: ${'x'.repeat(9_000)}\r\n\r\n`],
    ['one that is too large', `HTTP/1.1 100 Continue\r\nx: ${'x'.repeat(20_000)}`],
    ['a switch of protocols', 'HTTP/1.1 101 Switching Protocols\r\n\r\n'],
  ])('has no answer behind interim responses: %s', async (_case, head) => {
    const { port } = await listenTcp((socket) => socket.once('data', () => socket.end(`${head}HTTP/1.1 204 No Content\r\n\r\n`)));
    await expect(openPoster(`127.0.0.1:${port}`).post(requestTo(`http://127.0.0.1:${port}/`))).rejects.toEqual(failed('no_answer'));
  });

  it('returns the status of failures, and the receiver’s Retry-After', async () => {
    const { port } = await listenHttp((response) => response.setHeader('retry-after', ['2', '900']).writeHead(503).end('hunter2'));
    expect(await openPoster(`127.0.0.1:${port}`).post(requestTo(`http://127.0.0.1:${port}/`))).toEqual({ status: 503, retryAfterMs: 2_000 });
  });
});

/** Writes a little at a time while the connection is open. */
function drip(socket: Socket, first: string, next: () => string): void {
  socket.write(first);
  const timer = setInterval(() => socket.write(next()), 10);
  socket.once('close', () => clearInterval(timer));
}
