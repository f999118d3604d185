import { expect, it } from 'vitest';
import { SocketReads } from './socket-reads.ts';

const bytesOf = (...numbers: number[]) => numbers.map((number) => Uint8Array.of(number));

it('delivers reads in order, whether the reader waits or the reads do', async () => {
  const reads = new SocketReads();
  const received: number[] = [];
  const [early, together, late] = [bytesOf(1, 2, 3), bytesOf(4, 5), bytesOf(6)];
  for (const bytes of early) reads.add(bytes);
  const read = (async () => {
    for await (const [number] of reads) if (received.push(number ?? 0) === 6) return;
  })();
  await expect.poll(() => received).toEqual([1, 2, 3]);
  for (const bytes of together) reads.add(bytes);
  await expect.poll(() => received).toEqual([1, 2, 3, 4, 5]);
  for (const bytes of late) reads.add(bytes);
  await read;
  expect(received).toEqual([1, 2, 3, 4, 5, 6]);
});
