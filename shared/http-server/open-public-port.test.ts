import { once } from 'node:events';
import { Agent, type IncomingMessage, request, type Server } from 'node:http';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { fastify } from 'fastify';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openPublicPort, type PublicPort, type PublicPortOptions } from './open-public-port.ts';

const REQUEST_TIMEOUT_MS = 30_000;
const REFUSAL = { status: 503, headers: { 'retry-after': '1' }, body: { error: 'starting' } };

const broken = (by: string) => (_error: Error, socket: Socket) => void socket.end(`HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n${by}`);

async function open(changes: Partial<PublicPortOptions> = {}): Promise<PublicPort> {
  const port = await openPublicPort({
    host: '127.0.0.1',
    port: 0,
    backlog: 16,
    requestTimeoutMs: REQUEST_TIMEOUT_MS,
    whileBooting: {
      probes: { '/live': { status: 200, body: { status: 'ok' } }, '/ready': { status: 503, body: { status: 'booting' } } },
      refusal: REFUSAL,
      requestIdOf: () => 'req_1',
      respondToBrokenRequest: broken('boot'),
    },
    ...changes,
  });
  onTestFinished(() => port.close());
  return port;
}

function appOn({ serverFactory }: PublicPort) {
  const app = fastify({ serverFactory, requestTimeout: REQUEST_TIMEOUT_MS, clientErrorHandler: broken('app') });
  app.all('*', async () => ({ by: 'app' }));
  onTestFinished(() => app.close());
  return app;
}

const anywhere = { host: '127.0.0.1', port: 0 };

/** Sends a request over an agent's connections. @returns status, headers, body, and the local port used */
async function ask(url: string, agent: Agent, options: { method?: string; body?: string } = {}) {
  const { method = 'GET', body } = options;
  const sent = request(url, { agent, method });
  sent.end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const from = response.socket.localPort;
  let text = '';
  response.setEncoding('utf8').on('data', (piece: string) => {
    text += piece;
  });
  await once(response, 'end');
  return { status: response.statusCode, headers: response.headers, body: text === '' ? null : JSON.parse(text), from };
}

function oneConnection(): Agent {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  return agent;
}

/** A raw connection that collects received bytes. */
async function dial(url: string) {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  const received: Buffer[] = [];
  socket.on('data', (piece) => received.push(piece)).on('error', () => {});
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  return { socket, closed: once(socket, 'close'), text: () => Buffer.concat(received).toString('latin1') };
}

describe('until the app takes over', () => {
  it.each([
    ['GET', '/live', 200, { status: 'ok' }],
    ['GET', '/live?a=1', 200, { status: 'ok' }],
    ['GET', '/ready', 503, { status: 'booting' }],
    ['HEAD', '/live', 200, null],
    ['POST', '/live', 503, REFUSAL.body],
    ['GET', '/live/more', 503, REFUSAL.body],
    ['GET', '/constructor', 503, REFUSAL.body],
    ['POST', '/anything', 503, REFUSAL.body],
  ])('answers %s %s with %i', async (method, path, status, body) => {
    const { url } = await open();
    const answer = await ask(url + path, oneConnection(), { method });

    expect(answer).toMatchObject({ status, body, headers: { 'content-type': 'application/json; charset=utf-8', 'x-request-id': 'req_1' } });
    expect(answer.headers['retry-after']).toBe(body === REFUSAL.body ? '1' : undefined);
  });

  it('retains a connection whose request had an unread body', async () => {
    const { url } = await open();
    const agent = oneConnection();
    const refused = await ask(url, agent, { method: 'POST', body: 'x'.repeat(1_000_000) });
    const next = await ask(`${url}/live`, agent);

    expect([refused.status, next.status]).toEqual([503, 200]);
    expect(next.from).toBe(refused.from);
  });

  it('answers bytes that are not HTTP with the configured body', async () => {
    const { url } = await open();
    const client = await dial(url);
    client.socket.write('NONSENSE\r\n\r\n');
    await client.closed;

    expect(client.text()).toMatch(/^HTTP\/1\.1 400 .*\r\n\r\nboot$/s);
  });
});

describe('the takeover', () => {
  it('leaves connections open: the next request on each goes to the app, including a half-sent one', async () => {
    const port = await open();
    const agent = oneConnection();
    const before = await ask(`${port.url}/live`, agent);
    const half = await dial(port.url);
    half.socket.write('GET /live HTTP/1.1\r\nhost: x\r\n');
    const silent = await dial(port.url);
    const app = appOn(port);
    await app.ready();
    const meanwhile = await ask(`${port.url}/anything`, agent);
    await app.listen(anywhere);

    const after = await ask(`${port.url}/live`, agent);
    half.socket.write('connection: close\r\n\r\n');
    silent.socket.write('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
    await Promise.all([half.closed, silent.closed]);

    expect([before.body, meanwhile.body, after.body]).toEqual([{ status: 'ok' }, REFUSAL.body, { by: 'app' }]);
    expect([meanwhile.from, after.from]).toEqual([before.from, before.from]);
    for (const client of [half, silent]) expect(client.text()).toMatch(/^HTTP\/1\.1 200 .*\{"by":"app"\}/s);
  });

  it('serves new connections at the same port', async () => {
    const port = await open();
    const app = appOn(port);
    await app.listen(anywhere);

    expect((app.server.address() as AddressInfo).port).toBe(Number(new URL(port.url).port));
    expect((await ask(port.url, oneConnection())).body).toEqual({ by: 'app' });
  });

  it('leaves bytes that are not HTTP to the app', async () => {
    const port = await open();
    await appOn(port).listen(anywhere);
    const client = await dial(port.url);
    client.socket.write('NONSENSE\r\n\r\n');
    await client.closed;

    expect(client.text()).toMatch(/^HTTP\/1\.1 400 .*\r\n\r\napp$/s);
  });

  it('has a server with the limits of one that the framework creates, before and after it', async () => {
    const own = fastify({ requestTimeout: REQUEST_TIMEOUT_MS });
    const port = await open();
    const app = appOn(port);
    const before = limitsOf(app.server);
    await app.listen(anywhere);

    expect(before).toEqual(limitsOf(own.server));
    expect(limitsOf(app.server)).toEqual(limitsOf(own.server));
  });

  it('leaves connections from before in the server’s list: a close of the app ends those that are idle', async () => {
    const port = await open();
    const client = await dial(port.url);
    client.socket.write('GET /live HTTP/1.1\r\nhost: x\r\n\r\n');
    await once(client.socket, 'data');
    const app = appOn(port);
    await app.listen(anywhere);
    await app.close();

    await client.closed;
  });
});

describe('closing', () => {
  it('refuses connections and closes open ones, idempotently', async () => {
    const port = await open();
    const client = await dial(port.url);
    await Promise.all([port.close(), client.closed]);
    await port.close();

    await expect(ask(port.url, oneConnection())).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  it('is also done by the app’s own close, after the takeover', async () => {
    const port = await open();
    const app = appOn(port);
    await app.listen(anywhere);
    await app.close();

    await expect(ask(port.url, oneConnection())).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });
});

describe('a port that is taken', () => {
  it.each([
    ['PORT', '. Set PORT to a free port, or 0 for any'],
    [undefined, ''],
  ])('is refused by name, with the setting: %s', async (setting, remedy) => {
    const other = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void other.close());
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;

    await expect(open({ port, ...(setting && { setting }) })).rejects.toMatchObject({
      code: 'service.port_taken',
      message: `Port ${port} of 127.0.0.1 is taken by another program${remedy}`,
      details: { port },
    });
  });
});

it('an address that this machine does not have is refused by name, with the setting', async () => {
  const host = '192.0.2.1';
  await expect(open({ host })).rejects.toMatchObject({
    code: 'config.invalid',
    message: `${host} is not an address of this machine. Set HOST to 127.0.0.1, or 0.0.0.0 for all its addresses`,
  });
});

it('listens on every address of localhost, and leaves out unavailable ones', async () => {
  const port = await open({ host: 'localhost', addressesOf: async () => ['127.0.0.1', '127.0.0.2', '192.0.2.1', '127.0.0.2'] });
  const second = `http://127.0.0.2:${new URL(port.url).port}`;
  const agent = oneConnection();
  const before = await ask(`${second}/live`, agent);
  const app = appOn(port);
  await app.listen({ host: 'localhost', port: 0 });
  const after = await ask(`${second}/live`, agent);
  agent.destroy();
  await app.close();

  expect([before.body, after.body]).toEqual([{ status: 'ok' }, { by: 'app' }]);
  await expect(ask(second, oneConnection())).rejects.toMatchObject({ code: 'ECONNREFUSED' });
});

function limitsOf(server: Server) {
  const { keepAliveTimeout, requestTimeout, headersTimeout, timeout, maxHeadersCount, maxRequestsPerSocket, maxConnections } = server;
  return { keepAliveTimeout, requestTimeout, headersTimeout, timeout, maxHeadersCount, maxRequestsPerSocket, maxConnections };
}

it('takes the end of a client’s side for its leaving', async () => {
  const port = await open();
  const app = fastify({ serverFactory: port.serverFactory });
  onTestFinished(() => app.close());
  let onLeft = () => {};
  const left = new Promise<void>((resolve) => {
    onLeft = resolve;
  });
  app.get('/slow', async (request, reply) => {
    request.raw.once('close', onLeft);
    await left;
    return reply.send('an answer');
  });
  await app.listen(anywhere);
  const { socket, closed, text } = await dial(port.url);
  socket.end('GET /slow HTTP/1.1\r\nhost: x\r\n\r\n');

  await left;
  await closed;
  expect(text()).toBe('');
});
