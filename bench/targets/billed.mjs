import { createServer } from 'node:http';
import { serveCluster } from './serve-cluster.mjs';
import { serveTarget } from './serve-target.mjs';

/** @typedef {import('./serve-cluster.mjs').ClusterOptions} ClusterOptions */

/** Switchyard as a paid service: its one key has a limit and rate limits, its models have prices, and each call is traced. */
await serveTarget(async (/** @type {ClusterOptions} */ options) => {
  const collector = await openCollector();
  const isTraced = !options.without?.includes('traces');
  const served = await serveCluster({ ...options, isBilled: true, ...(isTraced ? { collectorUrl: collector.url } : {}) });
  return {
    ...served,
    stop: async () => {
      await served.stop();
      collector.close();
    },
    calls: { ...served.calls, exports: collector.exports },
  };
});

/** Takes traces and drops them. It is in this process, which is not measured. @returns {Promise<{ url: string, exports: () => number, close: () => void }>} */
async function openCollector() {
  let exports = 0;
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      exports += 1;
      response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end();
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(null)));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the collector has no port');
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${address.port}`, exports: () => exports, close };
}
