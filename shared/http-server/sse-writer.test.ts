import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { SseWriter } from './sse-writer.ts';

const LIMITS = { unsentBytes: 256 * 1_024, finishMs: 30_000 };

/** A response that records its calls. */
function recordingResponse() {
  const done: string[] = [];
  const response = Object.assign(new EventEmitter(), {
    writableLength: 0,
    closed: true,
    cork: () => done.push('hold'),
    uncork: () => done.push('send'),
    writeHead: () => done.push('head'),
    flushHeaders: () => done.push('flush head'),
    write: (bytes: string) => done.push(bytes),
    end: () => done.push('end'),
  });
  return { done, response: response as unknown as ServerResponse };
}

it('DESIGN 7: what is written in one tick is sent together, without a timer', async () => {
  const { done, response } = recordingResponse();
  const socket = new SseWriter(response, LIMITS, () => {});
  for (const piece of ['a', 'b', 'c']) socket.write(piece);
  await nextTurn();
  socket.write('d');
  await nextTurn();

  expect(done).toEqual(['hold', 'a', 'b', 'c', 'send', 'hold', 'd', 'send']);
});

it('sends the head of the response by itself, together with the first bytes', async () => {
  const { done, response } = recordingResponse();
  const socket = new SseWriter(response, LIMITS, () => {});
  socket.open({ 'content-type': 'text/event-stream' });
  socket.write('a');
  await Promise.resolve();

  // The first bytes do not wait for the end of the tick.
  expect(done).toEqual(['head', 'hold', 'flush head', 'a', 'send']);
  socket.write('b');
  await nextTurn();
  expect(done.slice(5)).toEqual(['hold', 'b', 'send']);
});

it('sends what is held before the end', () => {
  const { done, response } = recordingResponse();
  const socket = new SseWriter(response, LIMITS, () => {});
  socket.write('a');
  socket.end();

  expect(done).toEqual(['hold', 'a', 'send', 'end']);
});
