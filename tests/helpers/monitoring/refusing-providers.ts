import { once } from 'node:events';
import { createServer, type Server } from 'node:http';

/** Their provider's base URL ends with the status that it answers. */
export const REFUSING_MODELS = { 'test/credential': 401, 'test/missing': 404, 'test/limited': 429 } as const;

/** A provider for each of REFUSING_MODELS. */
export async function openRefusingProviders(): Promise<{ baseUrlOf(status: number): string; close(): Promise<void> }> {
  const server: Server = createServer((request, response) => {
    request.resume();
    const status = Number(request.url?.split('/')[1]);
    response.writeHead(status, { 'content-type': 'application/json', ...(status === 429 ? { 'retry-after': '120' } : {}) });
    response.end(JSON.stringify({ error: { message: 'refused', type: 'test', code: null } }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a TCP server has a port');
  return {
    baseUrlOf: (status) => `http://127.0.0.1:${address.port}/${status}/v1`,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
