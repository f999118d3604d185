import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';

/** More than any client reads. */
const ENDLESS_BYTES = 16 * 1024 * 1024;

/** What an engine does instead of its answer. `silent`: nothing, until it is closed. */
export type EngineFault = 'silent' | 'error' | 'refused' | 'not-json' | 'other-json' | 'huge' | 'redirect' | 'hang-up' | 'cut';

export interface EngineServer {
  /** Of its one operation, a POST. */
  url: string;
  /** Null: it answers. */
  fault: EngineFault | null;
  readonly requests: readonly { body: unknown; headers: IncomingMessage['headers'] }[];
  /** Requests that followed a redirect to it. */
  readonly followed: number;
  /** Requests that their client closed before the answer. */
  readonly aborts: number;
  close(): Promise<void>;
}

/** A real HTTP server on loopback in the place of a plugin's engine. @param answerOf its answer to a body */
export async function openEngineServer(path: string, answerOf: (body: unknown) => unknown): Promise<EngineServer> {
  const requests: { body: unknown; headers: IncomingMessage['headers'] }[] = [];
  let followed = 0;
  let aborts = 0;
  const opened: EngineServer = {
    url: '',
    fault: null,
    requests,
    get followed() {
      return followed;
    },
    get aborts() {
      return aborts;
    },
    async close() {
      if (!server.listening) return;
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
  const server = createServer((request, response) => {
    if (request.url !== path) {
      followed += 1;
      response.end('{}');
      return;
    }
    response.on('close', () => {
      if (!response.writableFinished) aborts += 1;
    });
    textOf(request).then(
      (text) => {
        requests.push({ body: JSON.parse(text), headers: request.headers });
        answer(opened.fault, () => answerOf(JSON.parse(text)), response);
      },
      () => response.destroy(),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  opened.url = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}${path}`;
  return opened;
}

async function textOf(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece);
  return Buffer.concat(pieces).toString('utf8');
}

function answer(fault: EngineFault | null, given: () => unknown, response: ServerResponse): void {
  const json = { 'content-type': 'application/json' };
  switch (fault) {
    case 'silent':
      return;
    case 'error':
      response.writeHead(500, json).end('{"error":"sk-engine is broken"}');
      return;
    case 'refused':
      response.writeHead(422, json).end('{"error":"no such document"}');
      return;
    case 'not-json':
      response.writeHead(200, json).end('<html>');
      return;
    case 'other-json':
      response.writeHead(200, json).end('{"results":[{"verdict":"fine"}]}');
      return;
    case 'huge':
      response.writeHead(200, json).end(`"${'x'.repeat(ENDLESS_BYTES)}"`);
      return;
    case 'redirect':
      response.writeHead(307, { location: '/private' }).end();
      return;
    case 'hang-up':
      response.destroy();
      return;
    case 'cut':
      response.writeHead(200, { ...json, 'content-length': '1000' }).write('{"results":[');
      response.destroy();
      return;
    case null:
      response.writeHead(200, json).end(JSON.stringify(given()));
  }
}
