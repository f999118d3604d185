import { once } from 'node:events';
import { createServer, get as getPlain, type IncomingMessage, type RequestListener } from 'node:http';
import { createServer as createTlsServer, get as getSecure } from 'node:https';
import type { AddressInfo } from 'node:net';
import { fetch } from 'undici';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Environment } from '../config/secret-ref.ts';
import type { HttpExchange } from './client.ts';
import { openOutbound } from './outbound.ts';
import { openProxyDouble, type ProxyDouble } from './test-support/open-proxy-double.ts';
import { selfMadeCertificate } from './test-support/self-made-certificate.ts';

const LIMITS = { connectTimeoutMs: 5_000, maxConnections: 2 };

/** No name server knows it: only a proxy can lead there. */
const NAME = 'somewhere.invalid';

async function openServer(answer: RequestListener = (request, response) => void response.end(`${request.headers.host}${request.url}`)): Promise<number> {
  const server = createServer(answer);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

async function openProxy(targetPort: number | null): Promise<ProxyDouble> {
  const proxy = await openProxyDouble(targetPort);
  onTestFinished(() => proxy.close());
  return proxy;
}

function clientOf(environment: Environment, baseUrl: string, limits = LIMITS) {
  const client = openOutbound(environment).openClient({ baseUrl, ...limits });
  onTestFinished(() => client.close());
  return client;
}

async function textOf(exchange: HttpExchange): Promise<string> {
  let text = '';
  await exchange.begun();
  await exchange.read((piece) => {
    text += piece.toString();
    return true;
  });
  return text;
}

describe('a URL of the configuration', () => {
  it('is reached through the proxy of the environment, which resolves its name', async () => {
    const proxy = await openProxy(await openServer());
    const { host } = new URL(proxy.url);
    const client = clientOf({ HTTP_PROXY: `http://user:pass%20word@${host}` }, `http://${NAME}:8080/v1`, { ...LIMITS, maxConnections: 1 });

    expect(await textOf(client.post('/x', { headers: {}, body: '{}' }))).toBe(`${NAME}:8080/v1/x`);
    expect(await textOf(client.post('/y', { headers: {}, body: 'long '.repeat(10_000) }))).toBe(`${NAME}:8080/v1/y`);
    expect(proxy.tunnels).toEqual([`${NAME}:8080`]);
    expect(proxy.credentials).toEqual([`Basic ${Buffer.from('user:pass word').toString('base64')}`]);
  });

  it('is reached directly when NO_PROXY exempts it, or when it is on this machine', async () => {
    const port = await openServer();
    const proxy = await openProxy(port);
    const client = clientOf({ HTTP_PROXY: proxy.url }, `http://127.0.0.1:${port}`);
    expect(await textOf(client.post('/x', { headers: {}, body: '{}' }))).toBe(`127.0.0.1:${port}/x`);

    const exempt = clientOf({ HTTP_PROXY: proxy.url, NO_PROXY: NAME }, `http://${NAME}`);
    await expect(exempt.post('/x', { headers: {}, body: '{}' }).begun()).rejects.toMatchObject({ syscall: 'getaddrinfo' });
    expect(proxy.tunnels).toEqual([]);
  });

  it('is given up after the connect limit when the proxy opens no tunnel, and at once after an abort', async () => {
    const proxy = await openProxy(null);
    const client = clientOf({ HTTP_PROXY: proxy.url }, `http://${NAME}`, { ...LIMITS, connectTimeoutMs: 100 });
    await expect(client.post('/x', { headers: {}, body: '{}' }).begun()).rejects.toMatchObject({ code: 'UND_ERR_HEADERS_TIMEOUT' });

    const aborted = clientOf({ HTTP_PROXY: proxy.url }, `http://${NAME}`).post('/x', { headers: {}, body: '{}' });
    const left = new Error('left');
    aborted.abort(left);
    await expect(aborted.begun()).rejects.toBe(left);
  });

  it('may be one of many for `fetch`, each by the proxy variables', async () => {
    const port = await openServer();
    const proxy = await openProxy(port);
    const dispatcher = openOutbound({ HTTP_PROXY: proxy.url }).openDispatcher(LIMITS);
    onTestFinished(() => dispatcher.destroy());
    const get = async (url: string) => (await fetch(url, { dispatcher, redirect: 'manual' })).text();

    expect(await Promise.all([get(`http://${NAME}/a`), get(`http://127.0.0.1:${port}/b`)])).toEqual([`${NAME}/a`, `127.0.0.1:${port}/b`]);
    expect(proxy.tunnels).toEqual([`${NAME}:80`]);
  });

  it('is reached through the proxy by a library of `node:http`, also over TLS', async () => {
    const { certificate, key } = selfMadeCertificate([NAME]);
    const secure = createTlsServer({ cert: certificate, key }, (request, response) => void response.end(`${request.headers.host}${request.url}`));
    secure.listen(0, '127.0.0.1');
    await once(secure, 'listening');
    onTestFinished(() => {
      secure.closeAllConnections();
      secure.close();
    });
    const [proxy, secureProxy] = [await openProxy(await openServer()), await openProxy((secure.address() as AddressInfo).port)];
    const outbound = openOutbound({ HTTP_PROXY: proxy.url, HTTPS_PROXY: secureProxy.url });
    const ask = async (url: string) => {
      const agent = outbound.openAgent(url, { ...LIMITS, tls: { ca: Buffer.from(certificate) } });
      onTestFinished(() => agent.destroy());
      const [response] = (await once((url.startsWith('https') ? getSecure : getPlain)(url, { agent }), 'response')) as [IncomingMessage];
      let text = '';
      for await (const piece of response.setEncoding('utf8')) text += piece;
      return text;
    };

    expect([await ask(`http://${NAME}:81/a`), await ask(`https://${NAME}/b`)]).toEqual([`${NAME}:81/a`, `${NAME}/b`]);
    expect([proxy.tunnels, secureProxy.tunnels]).toEqual([[`${NAME}:81`], [`${NAME}:443`]]);
  });

  it('is not left by a redirect', async () => {
    const port = await openServer((_, response) => void response.writeHead(307, { location: '/elsewhere' }).end());
    const exchange = clientOf({}, `http://127.0.0.1:${port}`).post('/x', { headers: {}, body: '{}' });
    await exchange.begun();

    expect([exchange.status, exchange.header('location')]).toEqual([307, '/elsewhere']);
    exchange.release();
  });
});

describe('a URL of a caller', () => {
  it('DESIGN 11: is never reached through a proxy, which would resolve the checked name again', async () => {
    const port = await openServer();
    const proxy = await openProxy(port);
    const rules = { allowHosts: new Set([`${NAME}:${port}`]) };
    const poster = openOutbound({ HTTP_PROXY: proxy.url, HTTPS_PROXY: proxy.url }).openPoster({ rules, lookup: async () => ['127.0.0.1'] });
    onTestFinished(() => poster.close());

    const response = await poster.post({ url: `http://${NAME}:${port}/x`, hostAllowlist: null, headers: {}, body: Buffer.from('{}') });
    expect(response.status).toBe(200);
    expect(proxy.tunnels).toEqual([]);
  });
});
