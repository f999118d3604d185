import { Connection } from './connection.mjs';

/** @typedef {import('./connection.mjs').Address} Address */

/** Longer than any request sent this way, such as a turn, or the first request to a cold process. */
const ANSWER_TIMEOUT_MS = 60_000;

/**
 * The bytes of a request, built once and sent many times.
 *
 * @param {{ address: Address, method?: string, path: string, headers?: Record<string, string>, body?: string }} request
 */
export function requestBytes({ address, method = 'POST', path, headers = {}, body = '' }) {
  const length = body === '' && method === 'GET' ? {} : { 'content-length': String(Buffer.byteLength(body)), 'content-type': 'application/json' };
  const lines = Object.entries({ host: `${address.host}:${address.port}`, ...headers, ...length }).map(([name, value]) => `${name}: ${value}`);
  return Buffer.from(`${[`${method} ${path} HTTP/1.1`, ...lines].join('\r\n')}\r\n\r\n${body}`);
}

/** @param {string} url @returns {Address} */
export function addressOf(url) {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port) };
}

/**
 * @param {Connection} connection
 * @param {Buffer} request
 * @returns {Promise<{ status: number, text: string }>}
 * @throws when there is no whole answer in a minute
 */
export function ask(connection, request) {
  return new Promise((resolve, reject) => {
    let status = 0;
    let text = '';
    const timeout = setTimeout(() => connection.leave('there was no answer in a minute'), ANSWER_TIMEOUT_MS);
    connection.send(request, {
      onStatus: (value) => {
        status = value;
      },
      onBody: (bytes) => {
        text += bytes.toString('utf8');
      },
      onEnd: (error) => {
        clearTimeout(timeout);
        if (error === null) resolve({ status, text });
        else reject(error);
      },
    });
  });
}

/**
 * A connection that is opened when needed, and reopened when its peer has closed it.
 *
 * @param {Address} address
 */
export function lastingConnection(address) {
  /** @type {Connection | null} */
  let connection = null;
  return {
    get: async () => {
      if (connection === null || !connection.isOpen) connection = await Connection.open(address);
      return connection;
    },
    leave: (/** @type {string | undefined} */ reason = undefined) => connection?.leave(reason),
  };
}
