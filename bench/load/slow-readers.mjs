import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { readUsage, total } from '../process-usage.mjs';
import { Failures } from './failures.mjs';

/**
 * @typedef {object} SlowLoad
 * @property {import('../http/connection.mjs').Address} address
 * @property {Buffer} request of a stream
 * @property {number} readers
 * @property {number} warmMs within which they begin, evenly
 * @property {number} measureMs after the last has begun
 * @property {readonly import('../process-usage.mjs').Root[]} roots
 */

/** @typedef {{ readers: number, mostBytes: number, mostOfGateway: number, afterBytes: number, failures: Failures }} SlowFigures growth of memory in bytes: the most, the gateway's, and what is left once the clients have gone */

const MEMORY_EVERY_MS = 1_000;
const SETTLE_MS = 1_000;
/** For calls to end whose clients have gone. */
const AFTER_MS = 5_000;
const GATEWAY = 'router-gateway';

/**
 * Clients that read the first bytes of their stream and no more, while the upstream sends as fast as it can.
 *
 * @param {SlowLoad} load
 * @returns {Promise<SlowFigures>}
 */
export async function slowReaders({ address, request, readers, warmMs, measureMs, roots }) {
  const failures = new Failures();
  const memory = () => {
    const usages = readUsage(roots);
    return { all: total(usages).memoryBytes, gateway: usages.find(({ name }) => name === GATEWAY)?.memoryBytes ?? 0 };
  };
  await delay(SETTLE_MS);
  const before = memory();
  let [mostBytes, mostOfGateway] = [0, 0];
  const sampling = setInterval(() => {
    const { all, gateway } = memory();
    mostBytes = Math.max(mostBytes, all - before.all);
    mostOfGateway = Math.max(mostOfGateway, gateway - before.gateway);
  }, MEMORY_EVERY_MS);
  /** @type {import('node:net').Socket[]} */
  const sockets = [];
  try {
    for (let index = 0; index < readers; index += 1) {
      sockets.push(openReader(address, request, failures));
      await delay(warmMs / readers);
    }
    await delay(measureMs);
  } finally {
    clearInterval(sampling);
    for (const socket of sockets) socket.destroy();
  }
  await delay(AFTER_MS);
  return { readers, mostBytes, mostOfGateway, afterBytes: memory().all - before.all, failures };
}

/** @param {import('../http/connection.mjs').Address} address @param {Buffer} request @param {Failures} failures */
function openReader(address, request, failures) {
  const socket = connect(address, () => void socket.write(request));
  socket.once('data', (bytes) => {
    socket.pause();
    const status = bytes.toString('latin1', 9, 12);
    if (status !== '200') failures.add(new Error(`answered ${status}`));
  });
  // The gateway disconnects clients that do not read.
  socket.on('error', () => {});
  return socket;
}
