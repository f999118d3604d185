import { Writable } from 'node:stream';
import { setImmediate as nextTick } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { corkForTick } from './cork-for-tick.ts';

it('passes the writes of a tick on at its end, in one piece, and those of the next tick in another', async () => {
  const pieces: string[][] = [];
  const stream = new Writable({
    decodeStrings: false,
    writev(chunks, done) {
      pieces.push(chunks.map(({ chunk }) => chunk));
      done();
    },
  });
  corkForTick(stream);
  stream.write('a');
  corkForTick(stream, () => stream.write('written at the end'));
  stream.write('b');
  expect(pieces).toEqual([]);
  await nextTick();
  corkForTick(stream);
  stream.write('c');
  await nextTick();
  expect(pieces).toEqual([['a', 'b', 'written at the end'], ['c']]);
});
