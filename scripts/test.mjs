import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';
import { prepare } from './prepare.mjs';
import { runScript } from './run-script.mjs';
import { ensureTestPrograms } from './test-programs.mjs';

await runScript(test);

/** Everything that the tests need, then the tests. Arguments after `--` go to vitest: `npm test -- bus`. */
async function test() {
  await prepare({ tests: true, build: true });
  await ensureTestPrograms();
  const vitest = fileURLToPath(new URL('../node_modules/vitest/vitest.mjs', import.meta.url));
  const child = spawn(process.execPath, [vitest, 'run', ...process.argv.slice(2)], {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    stdio: 'inherit',
  });
  for (const name of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) process.on(name, () => child.kill(name));
  const [code, signal] = await once(child, 'exit');
  process.exitCode = code ?? 128 + constants.signals[/** @type {NodeJS.Signals} */ (signal)];
}
