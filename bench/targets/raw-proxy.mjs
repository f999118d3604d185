import { Agent, createServer, request as startRequest } from 'node:http';
import { serveTarget } from './serve-target.mjs';

/**
 * The least between a client and a model provider in Node: bytes are forwarded unread, connections to the upstream are reused,
 * and a client's disconnect aborts the upstream's request.
 */
await serveTarget(async (/** @type {{ upstreamUrl: string }} */ { upstreamUrl }) => {
  const { hostname: host, port } = new URL(upstreamUrl);
  const agent = new Agent({ keepAlive: true });
  const server = createServer((request, response) => {
    const { method, url: path, headers } = request;
    const upstream = startRequest({ host, port, method, path, headers, agent }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
      answer.on('error', () => response.destroy());
    });
    upstream.on('error', () => response.destroy());
    response.on('close', () => response.writableFinished || upstream.destroy());
    request.pipe(upstream);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(null)));
  const address = server.address();
  const own = typeof address === 'object' ? address?.port : 0;
  return {
    facts: { roots: [{ name: 'raw-proxy', pid: process.pid }], routerUrl: `http://127.0.0.1:${own}` },
    stop: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
});
