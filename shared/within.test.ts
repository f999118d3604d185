import { once } from 'node:events';
import { connect } from 'node:net';
import { Worker } from 'node:worker_threads';
import { expect, it, onTestFinished } from 'vitest';
import { within } from './within.ts';

const never = new Promise<string>(() => {});
const late = () => 'late';

it('is the promise’s outcome in time, a rejection included', async () => {
  expect(await within(60_000, Promise.resolve('value'), late)).toBe('value');
  await expect(within(60_000, Promise.reject(new Error('refused')), late)).rejects.toThrow('refused');
});

it('is what `late` returns or throws after the limit, and a later rejection is ignored', async () => {
  let refuse = (_: Error): void => {};
  const refused = new Promise<string>((_, reject) => {
    refuse = reject;
  });
  expect(await within(1, refused, late)).toBe('late');
  refuse(new Error('unhandled'));
  await expect(
    within(1, never, () => {
      throw new Error('too late');
    }),
  ).rejects.toThrow('too late');
});

/** Sends back what it gets, and says so in the first integer of `workerData`. */
const ECHO = `
  const { createServer } = require('node:net');
  const { parentPort, workerData } = require('node:worker_threads');
  const server = createServer((socket) => {
    socket.on('data', (bytes) => socket.write(bytes, () => Atomics.store(workerData, 0, 1) && Atomics.notify(workerData, 0)));
  });
  server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));
`;

it('is an answer that arrived while the process was paused beyond the limit', async () => {
  const isSent = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const worker = new Worker(ECHO, { eval: true, workerData: isSent });
  onTestFinished(async () => void (await worker.terminate()));
  const [port] = await once(worker, 'message');
  const socket = connect(port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');

  const answer = within(1, once(socket, 'data'), late);
  const limit = performance.now() + 1;
  socket.write('value');
  expect(Atomics.wait(isSent, 0, 0, 60_000)).not.toBe('timed-out');
  while (performance.now() <= limit);

  expect(String(await answer)).toBe('value');
});

it('leaves no timer behind', async () => {
  const timers = () => process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;
  const before = timers();
  await within(60_000, Promise.resolve('value'), late);
  expect(timers()).toBe(before);
});
