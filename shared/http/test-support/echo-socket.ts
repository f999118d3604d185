import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import { onTestFinished } from 'vitest';

/** Sends back what it gets, and says so in the first integer of `workerData`. */
const ECHO = `
  const { createServer } = require('node:net');
  const { parentPort, workerData } = require('node:worker_threads');
  const server = createServer((socket) => {
    socket.on('data', (bytes) => socket.write(bytes, () => Atomics.store(workerData, 0, 1) && Atomics.notify(workerData, 0)));
  });
  server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));
`;

interface EchoSocket {
  socket: Socket;
  /** Reads nothing until what was written has come back into the socket's buffer, and this instant has passed, by `performance.now()`. */
  pauseUntil(instant: number): void;
}

/** A connection to a thread that sends everything back, also while this one is paused. For the current test. */
export async function openEchoSocket(): Promise<EchoSocket> {
  const isSent = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const worker = new Worker(ECHO, { eval: true, workerData: isSent });
  onTestFinished(async () => void (await worker.terminate()));
  const [port] = await once(worker, 'message');
  const socket = connect(port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  return {
    socket,
    pauseUntil: (instant) => {
      if (Atomics.wait(isSent, 0, 0, 60_000) === 'timed-out') throw new Error('nothing was sent back');
      while (performance.now() <= instant);
    },
  };
}
