import { expect, it, onTestFinished, vi } from 'vitest';
import { watchRequest } from './watch-request.ts';

const WAIT = { timeout: 60_000 };

/** A request of whose response each tick of the event loop reads a little. @param ticks of reading */
function reading(ticks: number, limits: { timeoutMs: number; longestMs: number }) {
  const request = watchRequest({ signal: new AbortController().signal, ...limits });
  let left = ticks;
  const read = () => {
    if (left === 0) return;
    left -= 1;
    request.watch.onRead();
    setImmediate(read);
  };
  read();
  onTestFinished(() => {
    left = 0;
    request.stop();
  });
  return request;
}

it.each([
  ['for its next message', { timeoutMs: 1, longestMs: 600_000 }],
  ['in all', { timeoutMs: 600_000, longestMs: 1 }],
])('a response that trickles into each tick of a busy process is late %s after a number of ticks', async (_case, limits) => {
  const request = reading(Number.POSITIVE_INFINITY, limits);

  await vi.waitFor(() => expect(request.failure()).toMatchObject({ kind: 'timeout' }), WAIT);
});
