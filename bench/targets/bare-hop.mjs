import { fileURLToPath } from 'node:url';
import { ensurePrograms } from '../../scripts/servers/programs.mjs';
import { openNats } from '../../scripts/servers/stores.mjs';
import { closeRun, launch, openRun } from '../../scripts/servers/test-run.mjs';
import { freePort } from '../../scripts/servers/test-tcp.mjs';
import { serveTarget } from './serve-target.mjs';
import { untilListening } from './until-listening.mjs';

/**
 * The least that a router of two processes and a broker can do: a gateway that parses a request and publishes it, a worker that asks the
 * upstream, parses the answer and publishes it. Nothing is validated, stored, counted or aborted.
 */
await serveTarget(async (/** @type {{ upstreamUrl: string }} */ { upstreamUrl }) => {
  const { nats: program } = await ensurePrograms(['nats'], { purpose: 'the bare hop runs on NATS', print: console.error });
  const run = await openRun({ callerHandlesSignals: true });
  const nats = await openNats(run, { program });
  const port = await freePort();
  const start = (/** @type {string} */ file) =>
    launch(run, {
      program: process.execPath,
      args: [fileURLToPath(new URL(file, import.meta.url))],
      env: { PATH: process.env.PATH, NODE_ENV: 'production', NATS_URL: nats.url, UPSTREAM_URL: upstreamUrl, PORT: String(port) },
    });
  const worker = start('bare-hop-worker.mjs');
  const gateway = start('bare-hop-gateway.mjs');
  await untilListening({ port, ...gateway });
  return {
    facts: {
      roots: [
        { name: 'gateway', pid: gateway.child.pid ?? 0 },
        { name: 'worker', pid: worker.child.pid ?? 0 },
        { name: 'nats', pid: nats.pid },
      ],
      routerUrl: `http://127.0.0.1:${port}`,
    },
    stop: () => closeRun(run),
  };
});
