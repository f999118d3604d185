import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';

/** What the upstream does with its next request; absent fields mean a healthy one. */
export interface VectorScenario {
  refuse?: { status: number; body: object; headers?: Record<string, string> };
  fault?: 'silent' | 'hang-up' | 'garbage' | 'cut' | 'stall' | 'endless';
  /** In place of the healthy answer. */
  body?: unknown;
}

interface Received {
  path: string;
  headers: IncomingMessage['headers'];
  body: unknown;
}

/** How a vendor's API answers. */
export interface VectorApi {
  /** @param body of the request */
  answer(body: unknown): unknown;
}

const ENDLESS_BYTES = 1024 * 1024;

/** A loopback HTTP server that answers requests for vectors in the form of one vendor. */
export async function openVectorUpstream(api: VectorApi) {
  let scenario: VectorScenario = {};
  const requests: Received[] = [];
  let aborts = 0;
  const server = createServer((request, response) => {
    let isOurs = false;
    response.on('close', () => {
      if (!response.writableFinished && !isOurs) aborts += 1;
    });
    const breakOff = () => {
      isOurs = true;
      response.socket?.destroy();
    };
    bodyOf(request).then((body) => {
      requests.push({ path: request.url ?? '', headers: request.headers, body });
      play(scenario, () => api.answer(body), response, breakOff);
    }, breakOff);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    origin: `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`,
    requests,
    plays(next: VectorScenario) {
      scenario = next;
    },
    get aborts() {
      return aborts;
    },
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

function play({ refuse, fault, body }: VectorScenario, healthy: () => unknown, response: ServerResponse, breakOff: () => void): void {
  const json = { 'content-type': 'application/json' };
  switch (fault) {
    case 'silent':
      return;
    case 'hang-up':
      breakOff();
      return;
    case 'garbage':
      response.writeHead(200, { 'content-type': 'text/html' }).end('<html>a proxy of the provider says hello</html>');
      return;
    case 'cut':
      response.writeHead(200, json).write(JSON.stringify(healthy()).slice(0, -10), breakOff);
      return;
    case 'stall':
      response.writeHead(200, json).write(JSON.stringify(healthy()).slice(0, -10));
      return;
    case 'endless': {
      const piece = Buffer.alloc(ENDLESS_BYTES, ' ');
      const more = () => {
        while (!response.destroyed && response.write(piece));
      };
      response.writeHead(200, json).on('drain', more);
      more();
      return;
    }
    default:
      if (refuse !== undefined) response.writeHead(refuse.status, { ...json, ...refuse.headers }).end(JSON.stringify(refuse.body));
      else response.writeHead(200, json).end(JSON.stringify(body === undefined ? healthy() : body));
  }
}
