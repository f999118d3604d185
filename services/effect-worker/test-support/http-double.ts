import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ReceivedRequest {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

export interface HttpDouble {
  port: number;
  /** In order. */
  received: ReceivedRequest[];
  close(): Promise<void>;
}

/** A local HTTP server with responses of the test. */
export async function openHttpDouble(
  answer: (received: ReceivedRequest, response: ServerResponse, request: IncomingMessage) => void | Promise<void>,
  port = 0,
): Promise<HttpDouble> {
  const received: ReceivedRequest[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const one = { method: request.method ?? '', url: request.url ?? '', headers: request.headers, body: Buffer.concat(chunks) };
    received.push(one);
    await answer(one, response, request);
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return {
    port: portOf(server.address()),
    received,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** A local port without a listener. */
export async function freePort(): Promise<number> {
  const server = await openHttpDouble(() => {});
  await server.close();
  return server.port;
}

function portOf(address: string | AddressInfo | null): number {
  if (typeof address !== 'object' || address === null) throw new TypeError('not a TCP address');
  return address.port;
}
