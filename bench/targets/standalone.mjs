import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { closeRun, hasEnded, launch, openRun } from '../../scripts/servers/test-run.mjs';
import { deploymentEnvironment } from './deployment-environment.mjs';
import { serveTarget } from './serve-target.mjs';

/** @typedef {import('./deployment-environment.mjs').DeploymentOptions} DeploymentOptions */

const CLONE = fileURLToPath(new URL('../..', import.meta.url));
/** The first start creates the embedded database. */
const READY_TIMEOUT_MS = 60_000;
const LOOK_AGAIN_MS = 50;

/** Switchyard as `npm start` runs it: one process on embedded drivers. Without the traces in memory, since no peer records any. */
await serveTarget(async (/** @type {DeploymentOptions} */ deployment) => {
  const run = await openRun({ callerHandlesSignals: true });
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-bench-'));
  const { keys, environment } = await deploymentEnvironment(folder, deployment);
  const readyPath = join(folder, 'ready.json');
  const own = {
    TRACES_LOCAL: 'false',
    ROUTER_PORT: '0',
    AGENT_PORT: '0',
    MANAGEMENT_PORT: '0',
    DATA_DIR: join(folder, 'data'),
    SWITCHYARD_READY_FILE: readyPath,
  };
  const args = [join('dist', 'services', 'standalone', 'main.js')];
  const { child, output } = launch(run, { program: process.execPath, args, cwd: CLONE, env: { ...environment, ...own } });
  const { routerUrl, agentUrl, managementUrl } = await readyFacts(readyPath, { child, output });
  const pid = child.pid ?? 0;
  return {
    facts: { roots: [{ name: 'standalone', pid }], routerUrl, agentUrl, keys, management: [{ role: 'standalone', managementUrl }] },
    stop: async () => {
      await closeRun(run);
      rmSync(folder, { recursive: true, force: true });
    },
    calls: { profile: () => void process.kill(pid, 'SIGUSR2') },
  };
});

/** @param {string} path @param {{ child: import('node:child_process').ChildProcess, output: () => string }} program */
async function readyFacts(path, { child, output }) {
  for (const untilMs = Date.now() + READY_TIMEOUT_MS; Date.now() < untilMs && !hasEnded(child); await delay(LOOK_AGAIN_MS)) {
    try {
      return JSON.parse(readFileSync(path, 'utf8'));
    } catch {
      // not yet written
    }
  }
  throw new Error(`it was not ready in time; it printed:\n${output()}`);
}
