import { accessSync, constants, copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { withLock } from './exclusive-lock.mjs';
import { processIdentity } from './process-identity.mjs';
import { describeRegistryDelay } from './registry-delay.mjs';
import { interruptible, runChild, signalGroup } from './run-child.mjs';
import { isProgram, runScript, ScriptError } from './run-script.mjs';
import { buildStamp, builtFiles, dataFolders, installStamp, readStamp, rooms, writeStamp } from './stamp.mjs';

const CLONE = fileURLToPath(new URL('..', import.meta.url)).replace(/[\\/]$/, '');

/** A normal install is done by then. */
const SLOW_INSTALL_MS = 30_000;

/** @typedef {{ root: string, signal: AbortSignal, print: (line: string) => void }} Context */
/** @typedef {{ stamp: () => string, folder: string, line: string, work: (context: Context) => Promise<void> }} Phase */

/**
 * Prepares a clone: installs packages, builds the sources, unless both are up to date. Concurrent calls in one clone take turns.
 *
 * @param {{ root?: string, build?: boolean, tests?: boolean, bench?: boolean, print?: (line: string) => void }} [options] `build` compiles into
 * dist/; `tests` also installs the packages of the tests and of the pages, `bench` those of the bench; `print` gets one line per phase that has work to do
 * @throws {ScriptError | import('./run-child.mjs').Interrupted}
 */
export async function prepare({ root = CLONE, build = false, tests = false, bench = false, print = console.log } = {}) {
  const more = [
    ...(tests
      ? [
          installingPackage(root, 'tests', 'Installing the clients that tests use (first run only) …'),
          installingPackage(root, 'web', 'Installing what builds the pages (first run only) …'),
        ]
      : []),
    ...(bench ? [installingPackage(root, 'bench', 'Installing what the bench compares with (first run only) …')] : []),
  ];
  const phases = [installing(root), ...more, ...(build ? [building(root)] : [])];
  if (phases.every(isDone)) return;
  refuseReadOnly(root);
  await interruptible((signal) =>
    withLock(
      join(root, '.prepare.lock'),
      async () => {
        killOrphanedTool(root);
        for (const phase of phases) await runPhase(phase, { root, print, signal });
      },
      { signal, onWait: (pid) => print(`Process ${pid} is installing or building here; waiting for it …`) },
    ),
  );
}

/** @param {Phase} phase */
function isDone({ folder, stamp }) {
  return readStamp(folder) === stamp();
}

/** @param {Phase} phase @param {Context} context */
async function runPhase(phase, context) {
  if (isDone(phase)) return; // done while we waited
  const stamp = phase.stamp(); // before the work, so that edits made meanwhile make it stale
  context.print(phase.line);
  rmSync(join(phase.folder, '.stamp'), { force: true });
  await phase.work(context);
  writeStamp(phase.folder, stamp);
}

/** @param {string} root @returns {Phase} */
function installing(root) {
  return {
    stamp: () => installStamp(root),
    folder: join(root, 'node_modules'),
    line: 'Installing packages (at the first start and after an update) …',
    work: (context) => npmCi(root, context),
  };
}

/** Installs a separate package inside the clone. @param {string} root @param {string} name of its folder @param {string} line @returns {Phase} */
function installingPackage(root, name, line) {
  const folder = join(root, name);
  return { stamp: () => installStamp(folder), folder: join(folder, 'node_modules'), line, work: (context) => npmCi(folder, context) };
}

/** @param {string} root @returns {Phase} */
function building(root) {
  return { stamp: () => buildStamp(root), folder: join(root, 'dist'), line: 'Building …', work: compile };
}

/** @param {string} folder @param {Context} context */
async function npmCi(folder, { root, signal, print }) {
  const { command, before } = npm();
  const installed = new AbortController();
  // npm retries an unreachable registry for more than a minute.
  const slow = setTimeout(async () => {
    const delay = await describeRegistryDelay({ command, before }, { cwd: folder, env: process.env, signal: installed.signal });
    if (!installed.signal.aborted) print(delay === null ? 'Still installing …' : `Still installing: ${delay} …`);
  }, SLOW_INSTALL_MS);
  const args = [...before, 'ci', '--include=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  const { code, output } = await runTool(command, args, { root, cwd: folder, signal }).finally(() => {
    clearTimeout(slow);
    installed.abort();
  });
  if (code === 0) return;
  throw new ScriptError(
    `Installing packages failed: npm ci in ${folder} ${outcomeOf(code)} (the first start needs to reach the package registry):\n${output.trim()}`,
  );
}

/** The npm that started this process, run by this Node, so that neither has to be on the PATH; else the npm on the PATH. */
function npm() {
  const started = process.env.npm_execpath;
  if (started !== undefined && /^npm-cli\.c?js$/.test(basename(started)) && existsSync(started)) return { command: process.execPath, before: [started] };
  return { command: 'npm', before: [] };
}

/**
 * Builds beside dist/ and takes its place at the end: processes that run from dist/ still find files that they load late.
 *
 * @param {Context} context
 */
async function compile({ root, signal }) {
  const dist = join(root, 'dist');
  const [next, former] = [`${dist}.next`, `${dist}.former`];
  for (const folder of [next, former]) rmSync(folder, { recursive: true, force: true }); // of a build that was killed
  mkdirSync(next);
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const { code, output } = await runTool(process.execPath, [tsc, '-p', 'tsconfig.build.json', '--outDir', next], { root, cwd: root, signal });
  if (code !== 0) throw new ScriptError(`Building failed: tsc ${outcomeOf(code)}:\n${output.trim()}`);
  // tsc does not copy SQL, HTML or JSON.
  for (const path of [...rooms, ...dataFolders].flatMap((folder) => builtFiles(root, folder))) {
    if (path.endsWith('.ts')) continue;
    mkdirSync(dirname(join(next, path)), { recursive: true });
    copyFileSync(join(root, path), join(next, path));
  }
  const programs = await runTool(process.execPath, [join(root, 'scripts', 'build-programs.mjs'), next], { root, cwd: root, signal });
  if (programs.code !== 0) throw new ScriptError(`Building failed: scripts/build-programs.mjs ${outcomeOf(programs.code)}:\n${programs.output.trim()}`);
  if (existsSync(dist)) renameSync(dist, former);
  renameSync(next, dist);
  rmSync(former, { recursive: true, force: true });
}

/**
 * Runs npm, tsc or the bundler and records its pid: it survives a `kill -9` of this process, and the next start must not work beside it.
 *
 * @param {string} command
 * @param {string[]} args
 * @param {{ root: string, cwd: string, signal: AbortSignal }} options
 */
async function runTool(command, args, { root, cwd, signal }) {
  const record = toolRecord(root);
  try {
    return await runChild(command, args, {
      cwd,
      env: { ...process.env, NODE_ENV: '' }, // `production` would omit the compiler
      signal,
      onStart: (pid) => writeFileSync(record, JSON.stringify({ pid, identity: processIdentity(pid) })),
    });
  } finally {
    rmSync(record, { force: true });
  }
}

/** Kills the tool that a killed start left running. @param {string} root */
function killOrphanedTool(root) {
  let recorded;
  try {
    recorded = JSON.parse(readFileSync(toolRecord(root), 'utf8'));
  } catch {
    return; // nothing left, or an unfinished record
  }
  if (recorded.identity !== null && processIdentity(recorded.pid) === recorded.identity) signalGroup(recorded.pid, 'SIGKILL');
}

/** @param {string} root */
function toolRecord(root) {
  return join(root, '.prepare.lock.tool');
}

/** @param {number | null} code */
function outcomeOf(code) {
  return code === null ? 'could not be run' : `ended with code ${code}`;
}

/** @param {string} root */
function refuseReadOnly(root) {
  try {
    accessSync(root, constants.W_OK);
  } catch {
    throw new ScriptError(
      `${root} is not writable by ${userInfo().username}, and packages and the build go there. Make a copy of your own, or change its owner.`,
    );
  }
}

if (isProgram(import.meta.url)) {
  await runScript(() => prepare({ build: process.argv.includes('--build'), tests: process.argv.includes('--tests') }));
}
