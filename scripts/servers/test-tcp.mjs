import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Below the ephemeral range: a restarted server needs its port again, which could have become the local end of an outgoing connection meanwhile,
 * even of a client that tries to reach that very port.
 */
const LOWEST = 15_000;
const HIGHEST = 32_000;
const MAX_ATTEMPTS = 50;

/** @returns {Promise<number>} a port that was free just now */
export async function freePort() {
  for (let attempt = 1; ; attempt += 1) {
    const port = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST));
    const server = createServer();
    try {
      server.listen(port, '127.0.0.1');
      await once(server, 'listening');
    } catch (error) {
      if (attempt === MAX_ATTEMPTS) throw error;
      continue;
    }
    server.close();
    await once(server, 'close');
    return port;
  }
}
