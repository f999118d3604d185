import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';
import { prepare } from './prepare.mjs';
import { runScript } from './run-script.mjs';
import { ensureTestPrograms } from './servers/test-programs.mjs';

/** What a run without servers consists of. */
const FAST_PROJECTS = ['units', 'own-process'];

await runScript(test);

/**
 * Prepares what a tier's tests need, then runs them. `--tier=<fast|normal|deep>`, default `normal`; further arguments go to vitest: `npm test --
 * bus`, `npm run test:fast -- --changed`.
 */
async function test() {
  const [, tier = 'normal'] = /^--tier=(.*)$/.exec(process.argv[2] ?? '') ?? [];
  const args = process.argv.slice(/^--tier=/.test(process.argv[2] ?? '') ? 3 : 2);
  const isFast = tier === 'fast';
  await prepare({ tests: true, build: !isFast });
  if (!isFast) await ensureTestPrograms();
  const vitest = fileURLToPath(new URL('../node_modules/vitest/vitest.mjs', import.meta.url));
  const child = spawn(process.execPath, [vitest, 'run', ...(isFast ? FAST_PROJECTS.flatMap((name) => ['--project', name]) : []), ...args], {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    env: { ...process.env, SWITCHYARD_TEST_TIER: tier },
    stdio: 'inherit',
  });
  for (const name of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) process.on(name, () => child.kill(name));
  const [code, signal] = await once(child, 'exit');
  process.exitCode = code ?? 128 + constants.signals[/** @type {NodeJS.Signals} */ (signal)];
}
