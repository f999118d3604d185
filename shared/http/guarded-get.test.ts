import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type GuardedGet, openGuardedGetter } from './guarded-get.ts';
import type { NameLookup } from './name-lookup.ts';
import { parseAllowHosts } from './outbound-guard.ts';

const PNG = new Set(['image/png']);

/** A server on loopback; `get` fetches from it, as an exception from the rules. */
async function open(answer: (response: ServerResponse) => void, lookup?: NameLookup) {
  const sockets: Socket[] = [];
  const server = createServer((_, response) => answer(response));
  server.on('connection', (socket) => sockets.push(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const getter = openGuardedGetter({ rules: { allowHosts: parseAllowHosts(`127.0.0.1:${port}`) }, ...(lookup === undefined ? {} : { lookup }) });
  onTestFinished(async () => {
    await getter.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const get = (more: Partial<GuardedGet> = {}) => getter.get({ url: `http://127.0.0.1:${port}/a.png?b=secret`, mediaTypes: PNG, ...more });
  return { get, getter, port, sockets };
}

const failed = (reason: string) => ({ code: 'outbound.failed', details: { reason, networkCode: null } });

describe('a guarded get', () => {
  it('DESIGN 11: a guarded get is refused for addresses that are not public, without a connection', async () => {
    const { getter, port, sockets } = await open(
      (response) => response.end(),
      async () => ['127.0.0.1'],
    );
    const fetch = (url: string) => getter.get({ url, mediaTypes: PNG });
    await expect(fetch(`https://files.example:${port}/a.png`)).rejects.toMatchObject({ code: 'outbound.refused', details: { reason: 'address_not_public' } });
    await expect(fetch('http://169.254.169.254/latest/meta-data')).rejects.toMatchObject({ code: 'outbound.refused' });
    await expect(fetch('file:///etc/passwd')).rejects.toMatchObject({ code: 'outbound.refused' });
    expect(sockets).toHaveLength(0);
  });

  it('returns the bytes and their type', async () => {
    const { get } = await open((response) => response.writeHead(200, { 'content-type': 'image/PNG; charset=binary' }).end('bytes'));
    expect(await get()).toEqual({ mediaType: 'image/png', bytes: Buffer.from('bytes') });
  });

  it.each<[string, string, (response: ServerResponse) => void]>([
    ['status', 'a redirect', (response) => response.writeHead(302, { location: 'http://127.0.0.1/' }).end()],
    ['status', 'an error', (response) => response.writeHead(404, { 'content-type': 'image/png' }).end()],
    ['type_not_allowed', 'a page', (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>')],
    ['type_not_allowed', 'no type', (response) => response.writeHead(200).end('x')],
    ['type_not_allowed', 'compressed bytes', (response) => response.writeHead(200, { 'content-type': 'image/png', 'content-encoding': 'gzip' }).end('x')],
    ['too_large', 'a length beyond the limit', (response) => response.writeHead(200, { 'content-type': 'image/png', 'content-length': '101' }).flushHeaders()],
    ['too_large', 'more bytes than the limit', (response) => response.writeHead(200, { 'content-type': 'image/png' }).write(Buffer.alloc(101))],
  ])('fails with %s for %s, and quotes no path', async (reason, _, answer) => {
    const { get } = await open(answer);
    const failure = get({ maxBytes: 100 });
    await expect(failure).rejects.toMatchObject(failed(reason));
    await expect(failure).rejects.not.toThrow(/secret|a\.png/);
  });

  it('fails when the body is not complete in time, and when it breaks off', async () => {
    const stalled = await open((response) => response.writeHead(200, { 'content-type': 'image/png' }).write('x'));
    await expect(stalled.get({ timeoutMs: 100 })).rejects.toMatchObject(failed('timeout'));
    const cut = await open((response) => {
      response.writeHead(200, { 'content-type': 'image/png', 'content-length': '9' }).write('x', () => response.socket?.destroy());
    });
    await expect(cut.get()).rejects.toMatchObject({ code: 'outbound.failed', details: { reason: 'no_answer' } });
  });

  it('ends with the reason of an abort', async () => {
    const { get } = await open(() => {});
    await expect(get({ signal: AbortSignal.timeout(50) })).rejects.toMatchObject({ name: 'TimeoutError' });
  });
});
