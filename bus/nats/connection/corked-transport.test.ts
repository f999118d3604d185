import { createServer, Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { connectCorked } from './corked-transport.ts';
import { atTickEnd, leaveNow } from './tick-end.ts';

const INFO = 'INFO {"server_id":"one","version":"2.10.0","max_payload":1048576,"headers":true}\r\n';

/** A broker that answers pings and records the rest. */
function serve() {
  let sent = '';
  const readers: Socket[] = [];
  const server = createServer((socket) => {
    readers.push(socket);
    socket.setNoDelay();
    socket.write(INFO);
    socket.on('data', (bytes) => {
      sent += bytes;
      if (bytes.includes('PING\r\n')) socket.write('PONG\r\n');
    });
    socket.on('error', () => {});
  });
  return { server, readers, sent: () => sent };
}

let broker: ReturnType<typeof serve>;

beforeEach(async () => {
  broker = serve();
  await new Promise<void>((resolve) => broker.server.listen(0, '127.0.0.1', resolve));
});

afterEach(() => broker.server.close());

function open() {
  const address = broker.server.address();
  if (address === null || typeof address === 'string') throw new Error('the server does not listen');
  return connectCorked({ servers: `127.0.0.1:${address.port}`, reconnect: false });
}

it('writes what is sent in one tick once, also what is sent as a consequence', async () => {
  const connection = await open();
  await nextTurn();
  // The PONG is a write of its own, and not a `_writev`.
  const written = vi.spyOn(Socket.prototype, '_writev');
  connection.publish('a', 'one');
  await Promise.resolve().then(() => {});
  connection.publish('b', 'two');
  queueMicrotask(() => connection.publish('c', 'three'));
  await connection.flush();

  expect(written).toHaveBeenCalledTimes(1);
  await expect.poll(() => broker.sent().match(/PUB . \d/g)).toEqual(['PUB a 3', 'PUB b 3', 'PUB c 5']);
  vi.restoreAllMocks();
  await connection.close();
});

it('writes with it what is sent at the end of the tick', async () => {
  const connection = await open();
  await nextTurn();
  const written = vi.spyOn(Socket.prototype, '_writev');
  atTickEnd(() => connection.publish('c', 'last'));
  connection.publish('a', 'one');
  await nextTurn();
  await nextTurn();

  expect(written).toHaveBeenCalledTimes(1);
  await expect.poll(() => broker.sent().match(/PUB . \d/g)).toEqual(['PUB a 3', 'PUB c 4']);
  vi.restoreAllMocks();
  await connection.close();
});

it('writes first where something is sent at the end of the tick: it was published before what others were sent meanwhile', async () => {
  const [early, late] = [await open(), await open()];
  await nextTurn();
  const uncorked = vi.spyOn(Socket.prototype, 'uncork');
  atTickEnd(() => late.publish('b', 'said'));
  early.publish('a', 'what came of it');
  await nextTurn();
  await nextTurn();
  vi.restoreAllMocks();

  await expect.poll(() => broker.sent().match(/PUB . \d+/g)).toEqual(['PUB b 4', 'PUB a 15']);
  expect(uncorked).toHaveBeenCalledTimes(2);
  await Promise.all([early.close(), late.close()]);
});

it('does not wait for the end of the tick at a flush, and what is published then goes first', async () => {
  const [early, late] = [await open(), await open()];
  await nextTurn();
  const uncorked = vi.spyOn(Socket.prototype, 'uncork');
  early.publish('a', 'what came of it');
  await Promise.resolve();
  leaveNow(() => late.publish('b', 'said'));
  await Promise.resolve().then(() => {});
  expect(uncorked).toHaveBeenCalledTimes(2);
  // The tick goes on, and so does its cork.
  early.publish('c', 'rest');
  await nextTurn();
  await nextTurn();
  expect(uncorked).toHaveBeenCalledTimes(3);
  vi.restoreAllMocks();

  await expect.poll(() => broker.sent().match(/PUB . \d+/g)).toEqual(['PUB b 4', 'PUB a 15', 'PUB c 4']);
  await Promise.all([early.close(), late.close()]);
});

it('sends what is left before it closes', async () => {
  const connection = await open();
  connection.publish('a', 'last');
  await connection.drain();

  await expect.poll(() => broker.sent()).toContain('PUB a 4\r\nlast\r\n');
});

it('delivers messages in order, however the bytes are split', async () => {
  const received: string[] = [];
  const connection = await open();
  connection.subscribe('words', { callback: (_error, message) => void received.push(message.string()) });
  await connection.flush();
  const [reader] = broker.readers;
  // Two messages and a half in one chunk, then the rest byte by byte.
  reader?.write('MSG words 1 3\r\none\r\nMSG words 1 3\r\ntwo\r\nMSG wor');
  for (const byte of 'ds 1 5\r\nthree\r\nMSG words 1 4\r\nfour\r\n') {
    await nextTurn();
    reader?.write(byte);
  }
  await expect.poll(() => received).toEqual(['one', 'two', 'three', 'four']);
  await connection.close();
});
