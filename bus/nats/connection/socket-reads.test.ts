import { expect, it } from 'vitest';
import { SocketReads } from './socket-reads.ts';

const bytesOf = (...numbers: number[]) => numbers.map((number) => Uint8Array.of(number));

it('gives its reader what comes, in order, whether he waits or it does', async () => {
  const arrivals = new SocketReads();
  const received: number[] = [];
  const [early, together, late] = [bytesOf(1, 2, 3), bytesOf(4, 5), bytesOf(6)];
  for (const bytes of early) arrivals.add(bytes);
  const read = (async () => {
    for await (const [number] of arrivals) if (received.push(number ?? 0) === 6) return;
  })();
  await expect.poll(() => received).toEqual([1, 2, 3]);
  for (const bytes of together) arrivals.add(bytes);
  await expect.poll(() => received).toEqual([1, 2, 3, 4, 5]);
  for (const bytes of late) arrivals.add(bytes);
  await read;
  expect(received).toEqual([1, 2, 3, 4, 5, 6]);
});
