import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chdir } from 'node:process';
import { fileURLToPath } from 'node:url';
import { prepare } from '../scripts/prepare.mjs';
import { runScript, ScriptError } from '../scripts/run-script.mjs';
import { allowedCores } from './machine.mjs';
import { optionsFrom, usage } from './options.mjs';

/** Raises the limit of open files to the hard limit: ten thousand clients need a socket each, as does their gateway. */
const WITH_MANY_FILES = 'ulimit -n "$(ulimit -Hn)" && exec "$@"';

const args = process.argv.slice(2);
const options = optionsFrom(args);
if (options === 'help') process.stdout.write(`${usage}\n`);
else if (options instanceof Error) {
  console.error(`${options.message}\n\n${usage}`);
  process.exitCode = 2;
} else await runScript(bench);

/** Runs the bench on one core and its target processes on another. */
async function bench() {
  chdir(fileURLToPath(new URL('..', import.meta.url)));
  const [own, targets] = coresToUse();
  await prepare({ build: true, bench: true, print: console.error });
  const program = ['sh', '-c', WITH_MANY_FILES, 'bench', process.execPath, 'bench/main.mjs', ...args];
  const child = spawn('taskset', ['-c', String(own), ...program], {
    stdio: 'inherit',
    env: { ...process.env, BENCH_OWN_CORE: String(own), BENCH_TARGET_CORE: String(targets) },
  });
  // Ctrl-C in a terminal reaches the bench too; it ends its processes, and then this script ends.
  for (const name of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) process.on(name, () => void child.kill(name));
  const [code] = await once(child, 'exit');
  process.exitCode = code ?? 1;
}

/** @returns {[number, number]} the bench's core, the targets' core */
function coresToUse() {
  const isLinux = process.platform === 'linux';
  const [own, targets] = isLinux && spawnSync('taskset', ['--version']).status === 0 ? allowedCores() : [];
  if (own === undefined || targets === undefined)
    throw new ScriptError('The bench needs Linux, taskset (util-linux), and two cores: one for the load, one for what it measures.');
  return [own, targets];
}
