import { createRequire } from 'node:module';
import { closeRun, launch, openRun } from '../../scripts/servers/test-run.mjs';
import { freePort } from '../../scripts/servers/test-tcp.mjs';
import { serveTarget } from './serve-target.mjs';
import { untilListening } from './until-listening.mjs';

/** Portkey's gateway as it comes from npm. */
await serveTarget(async (/** @type {{ upstreamUrl: string }} */ { upstreamUrl }) => {
  const run = await openRun({ callerHandlesSignals: true });
  const program = createRequire(import.meta.url).resolve('@portkey-ai/gateway/build/start-server.js');
  const port = await freePort();
  const { child, output } = launch(run, {
    program: process.execPath,
    args: [program, `--port=${port}`, '--headless'],
    env: { PATH: process.env.PATH, NODE_ENV: 'production', TRUSTED_CUSTOM_HOSTS: new URL(upstreamUrl).hostname },
  });
  await untilListening({ port, child, output });
  return {
    facts: { roots: [{ name: 'portkey', pid: child.pid ?? 0 }], routerUrl: `http://127.0.0.1:${port}` },
    stop: () => closeRun(run),
  };
});
