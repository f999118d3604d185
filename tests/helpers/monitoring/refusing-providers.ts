import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';

/** Their provider's base URL ends with the status that it answers. */
export const REFUSING_MODELS = { 'test/credential': 401, 'test/missing': 404, 'test/limited': 429 } as const;

export interface RefusingProviders {
  /** Of the provider that answers with a status, or with none until `release`. */
  baseUrlOf(answer: number | 'silent'): string;
  /** Requests that wait for the silent one. */
  waiting(): number;
  /** Ends their connections. */
  release(): void;
  close(): Promise<void>;
}

/** A provider for each of REFUSING_MODELS, and one that does not answer. */
export async function openRefusingProviders(): Promise<RefusingProviders> {
  const waiting = new Set<ServerResponse>();
  const server: Server = createServer((request, response) => {
    request.resume();
    const answer = request.url?.split('/')[1];
    if (answer === 'silent') {
      waiting.add(response);
      response.on('close', () => waiting.delete(response));
      return;
    }
    const status = Number(answer);
    response.writeHead(status, { 'content-type': 'application/json', ...(status === 429 ? { 'retry-after': '120' } : {}) });
    response.end(JSON.stringify({ error: { message: 'refused', type: 'test', code: null } }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a TCP server has a port');
  return {
    baseUrlOf: (answer) => `http://127.0.0.1:${address.port}/${answer}/v1`,
    waiting: () => waiting.size,
    release: () => {
      for (const response of waiting) response.destroy();
    },
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
