import { createServer, type ServerResponse } from 'node:http';

export interface RawUpstream {
  /** Without a path. */
  url: string;
  /** What it does with its next requests. @param path of the request */
  replyWith(reply: (response: ServerResponse, path: string) => void): void;
  close(): Promise<void>;
}

/** An HTTP server on loopback, in no dialect: a test writes its answers. */
export async function openRawUpstream(): Promise<RawUpstream> {
  let reply: (response: ServerResponse, path: string) => void = (response) => response.end();
  const server = createServer((request, response) => {
    request.resume().on('end', () => reply(response, request.url ?? ''));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`,
    replyWith(next) {
      reply = next;
    },
    close: () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      return closed;
    },
  };
}

/** Server-sent events of values. */
export function eventsOf(...values: readonly object[]): string {
  return values.map((value) => `data: ${JSON.stringify(value)}\n\n`).join('');
}

/** Sends the head and these bytes, and leaves the answer open. @param then called once they are sent */
export function begin(response: ServerResponse, bytes: string | Uint8Array, then: () => void = () => {}, contentType = 'text/event-stream'): void {
  response.writeHead(200, { 'content-type': contentType });
  response.write(bytes, then);
}

/** Breaks the connection behind these bytes. */
export function cut(response: ServerResponse, bytes: string | Uint8Array, contentType?: string): void {
  begin(response, bytes, () => response.destroy(), contentType);
}
