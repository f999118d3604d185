import { fileURLToPath } from 'node:url';
import { ensurePrograms } from '../../scripts/servers/programs.mjs';
import { openPostgres } from '../../scripts/servers/stores.mjs';
import { closeRun, launch, openRun } from '../../scripts/servers/test-run.mjs';
import { freePort } from '../../scripts/servers/test-tcp.mjs';
import { shapeName } from '../shape.mjs';
import { serveTarget } from './serve-target.mjs';
import { untilListening } from './until-listening.mjs';

/** @typedef {{ upstreamUrl: string, turnShape: import('../shape.mjs').Shape }} Options */

/** A durable workflow of DBOS behind a plain HTTP server, on a PostgreSQL of its own with the settings of the cluster's. */
await serveTarget(async (/** @type {Options} */ { upstreamUrl, turnShape }) => {
  const { postgresBin } = await ensurePrograms(['postgresBin'], { purpose: 'DBOS runs on PostgreSQL', print: console.error });
  const run = await openRun({ callerHandlesSignals: true });
  const postgres = await openPostgres(run, { bin: postgresBin, durable: true });
  const port = await freePort();
  const { child, output } = launch(run, {
    program: process.execPath,
    args: [fileURLToPath(new URL('dbos-app.mjs', import.meta.url))],
    env: {
      PATH: process.env.PATH,
      NODE_ENV: 'production',
      PORT: String(port),
      DATABASE_URL: postgres.url,
      MODEL_URL: `${upstreamUrl}/${shapeName(turnShape)}/v1/chat/completions`,
    },
  });
  await untilListening({ port, child, output });
  return {
    facts: {
      roots: [
        { name: 'dbos', pid: child.pid ?? 0 },
        { name: 'postgres', pid: postgres.pid },
      ],
      turnUrl: `http://127.0.0.1:${port}/turns`,
    },
    stop: () => closeRun(run),
  };
});
