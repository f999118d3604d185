import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Systems give the ends of outgoing connections ports above these. A server that is taken away and given back needs its port again, which
 * another process could have been given meanwhile, or a client that tries to reach it: a connection to a port may be given that very port.
 */
const LOWEST = 15_000;
const HIGHEST = 32_000;
/** Hardly any of them are taken. */
const MAX_ATTEMPTS = 50;

/** @returns {Promise<number>} a port that was free a moment ago */
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
