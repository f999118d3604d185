import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';

/** What the upstream does with its next requests. */
type UpstreamReply =
  /** `isCut`: the connection breaks behind the chunks, without an end mark. */
  { chunks: readonly object[]; isCut?: boolean } | { status: number; body: object; headers?: Record<string, string> };

export interface WireUpstream {
  baseUrl: string;
  replyWith(reply: UpstreamReply): void;
  /** Bodies that were received, in order. */
  readonly requests: readonly unknown[];
  close(): Promise<void>;
}

/** An HTTP server on loopback that sends chunks as they are given. */
export async function openWireUpstream(): Promise<WireUpstream> {
  let reply: UpstreamReply = { chunks: [] };
  const requests: unknown[] = [];
  const server = createServer((request, response) => {
    bodyOf(request).then(
      (body) => {
        requests.push(body);
        send(reply, response);
      },
      () => response.destroy(),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    baseUrl: `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/v1`,
    replyWith(next) {
      reply = next;
    },
    requests,
    close: () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      return closed;
    },
  };
}

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece);
  return JSON.parse(Buffer.concat(pieces).toString('utf8'));
}

function send(reply: UpstreamReply, response: ServerResponse): void {
  if ('status' in reply) {
    response.writeHead(reply.status, { 'content-type': 'application/json', ...reply.headers }).end(JSON.stringify(reply.body));
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const events = reply.chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('');
  if (reply.isCut === true) response.write(events, () => response.destroy());
  else response.end(`${events}data: [DONE]\n\n`);
}
