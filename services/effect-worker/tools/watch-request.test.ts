import { expect, it, onTestFinished, vi } from 'vitest';
import { watchRequest } from './watch-request.ts';

const WAIT = { timeout: 60_000 };

/** A request of whose response each tick of the event loop reads a piece. @param ticks of reading */
function reading(ticks: number, sizeBytes: number, limits: { timeoutMs: number; longestMs: number }) {
  const request = watchRequest({ signal: new AbortController().signal, ...limits });
  let left = ticks;
  const read = () => {
    if (left === 0) return;
    left -= 1;
    request.watch.onRead(sizeBytes);
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
  const request = reading(Number.POSITIVE_INFINITY, 10, limits);

  await vi.waitFor(() => expect(request.failure()).toMatchObject({ kind: 'timeout' }), WAIT);
});

it.each([
  ['for its next message', { timeoutMs: 1, longestMs: 600_000 }],
  ['in all', { timeoutMs: 600_000, longestMs: 1 }],
])('a long response that has arrived in a pause of the process is read to its end (%s)', async (_case, limits) => {
  const request = reading(1_000, 65_536, limits);
  let ticks = 0;
  await new Promise<void>((resolve) => {
    const tick = () => {
      ticks += 1;
      if (ticks === 900) resolve();
      else setImmediate(tick);
    };
    tick();
  });
  expect(request.failure()).toBeNull();

  await vi.waitFor(() => expect(request.failure()).toMatchObject({ kind: 'timeout' }), WAIT);
});
