import { afterEach, expect, it } from 'vitest';
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
  // By this clock slices are ten seconds apart.
  const fetcher = openWatchedFetch({ environment: {}, nowMs: () => (nowMs += 10_000) });
  closers.unshift(() => fetcher.close());
  let cuts = 0;
  const response = await fetcher.fetch(`http://127.0.0.1:${double.port}`, { method: 'GET' }, () => (cuts += 1));

  expect(await response.text()).toBe(EVENT);
  expect(cuts).toBe(0);
});
