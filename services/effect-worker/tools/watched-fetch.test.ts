import { afterEach, expect, it } from 'vitest';
import { openProxyDouble } from '#shared/http/test-support/open-proxy-double.ts';
import { openHttpDouble } from '../test-support/http-double.ts';
import { MAX_RESPONSE_BYTES, openWatchedFetch } from './watched-fetch.ts';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

const PIECE = ': still here\n\n'.repeat(4_096);
const PIECES = Math.ceil((MAX_RESPONSE_BYTES + 1) / PIECE.length);
const EVENT = 'data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n';

it('DESIGN 13: a standing stream is not ended for its total size', async () => {
  const double = await openHttpDouble(async (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (let piece = 0; piece < PIECES; piece += 1) {
      if (!response.write(PIECE)) await new Promise((resolve) => response.once('drain', resolve));
    }
    response.end(EVENT);
  });
  closers.push(() => double.close());
  let nowMs = 0;
  // By this clock slices are ten seconds apart. The machine's may be set back meanwhile.
  const intervalClock = { nowMs: () => (nowMs += 10_000) };
  const fetcher = openWatchedFetch({ environment: {}, nowMs: () => 0, intervalClock });
  closers.unshift(() => fetcher.close());
  let cuts = 0;
  const response = await fetcher.fetch(`http://127.0.0.1:${double.port}`, { method: 'GET' }, () => (cuts += 1));

  expect(await response.text()).toBe(EVENT);
  expect(cuts).toBe(0);
});

it('reaches a tool server through the proxy of the environment', async () => {
  const double = await openHttpDouble(async (_request, response) => void response.end('{}'));
  closers.push(() => double.close());
  const proxy = await openProxyDouble(double.port);
  closers.push(() => proxy.close());
  const fetcher = openWatchedFetch({ environment: { HTTP_PROXY: proxy.url }, nowMs: () => 0 });
  closers.unshift(() => fetcher.close());

  expect(await (await fetcher.fetch('http://tools.invalid/mcp')).text()).toBe('{}');
  expect(proxy.tunnels).toEqual(['tools.invalid:80']);
});
