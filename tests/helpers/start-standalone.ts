import { execFile } from 'node:child_process';
import { access, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { inject } from 'vitest';
import { z } from 'zod';
import { eventually } from './eventually.ts';
import { freeFolder } from './free-folder.ts';
import { type Exit, type ProgramOptions, type RunningProgram, root, runProgram } from './run-program.ts';

export interface Standalone {
  routerUrl: string;
  agentUrl: string;
  /** With MANAGEMENT_PORT only. */
  managementUrl?: string | undefined;
  /** The serving process, which is not the spawned one when npm or a terminal is in between. */
  pid: number;
  keys: { routerKey: string; managementKey: string; agentKey: string };
  dataDir: string;
  /** The spawned program. */
  program: RunningProgram;
  output(): string;
  /** Sends SIGTERM and waits for the exit. */
  stop(signal?: NodeJS.Signals): Promise<Exit>;
  /** kill -9, as in a power cut. */
  kill(): Promise<Exit>;
}

export interface StandaloneOptions extends ProgramOptions {
  /** Default: a new one. */
  dataDir?: string;
  /** Default: the built program, run directly. */
  command?: string[];
  /** Whether the program makes its database itself; by default a new folder gets a copy of a migrated one, which takes a fifth of the CPU. */
  isFirstStart?: boolean;
}

/** A first start creates its database, on a busy machine. */
const READY_TIMEOUT_MS = 90_000;

const readyFile = z.object({ pid: z.number(), routerUrl: z.url(), agentUrl: z.url(), managementUrl: z.url().optional() });
/** Without keys that the environment sets. */
const keyFile = z.object({ router_key: z.string().default(''), router_management_key: z.string().default(''), agent_key: z.string().default('') });

export const builtProgram = [process.execPath, 'dist/services/standalone/main.js'];

/** For programs with the embedded database, `npm start` included. */
export const fewerWasmTiers = { NODE_OPTIONS: `--import=${pathToFileURL(`${root}tests/helpers/fewer-wasm-tiers.mjs`)}` };

/**
 * Starts every service in one process, on free ports and the scripted model, and waits until it is ready. What is still running when the
 * test file ends is killed.
 *
 * @throws with its output when it ends, or is not ready in time
 */
export async function startStandalone({ dataDir, command = builtProgram, cwd, env = {}, isFirstStart = false }: StandaloneOptions = {}): Promise<Standalone> {
  const folder = env.DATA_DIR ?? dataDir ?? join(await freeFolder('data'), 'data');
  if (!isFirstStart) await fillNewFolder(folder);
  const readyPath = join(await freeFolder('ready'), 'ready.json');
  const ports = { ROUTER_PORT: '0', AGENT_PORT: '0' };
  const settings = { ...fewerWasmTiers, ...ports, SWITCHYARD_READY_FILE: readyPath, SCRIPTED_WORDS_PER_SECOND: '0', ...env, DATA_DIR: folder };
  const program = runProgram(command, { ...(cwd === undefined ? {} : { cwd }), env: settings });

  const ready = await eventually(
    async () => {
      if (program.hasExited()) return { ended: await program.exited };
      return readyFile.parse(JSON.parse(await readFile(readyPath, 'utf8')));
    },
    { timeoutMs: READY_TIMEOUT_MS },
  ).catch((cause) => {
    program.signal('SIGKILL');
    throw new Error(`it was not ready in time; it printed:\n${program.output()}`, { cause });
  });
  if ('ended' in ready) throw new Error(`it ended with ${JSON.stringify(ready.ended)} before it was ready; it printed:\n${program.output()}`);

  const stored = keyFile.parse(JSON.parse(await readFile(join(folder, 'keys.json'), 'utf8')));
  return {
    ...ready,
    keys: {
      routerKey: env.ROUTER_API_KEY ?? stored.router_key,
      managementKey: env.ROUTER_MANAGEMENT_KEY ?? stored.router_management_key,
      agentKey: env.AGENT_API_KEY ?? stored.agent_key,
    },
    dataDir: folder,
    program,
    output: program.output,
    stop: (signal = 'SIGTERM') => {
      program.signal(signal);
      return program.exited;
    },
    kill: () => {
      process.kill(ready.pid, 'SIGKILL');
      return program.exited;
    },
  };
}

/** Creates a data folder with a migrated database. */
async function fillNewFolder(folder: string): Promise<void> {
  const isThere = await access(folder).then(
    () => true,
    () => false,
  );
  if (isThere) return;
  const database = join(folder, 'database');
  await mkdir(database, { recursive: true, mode: 0o700 });
  await promisify(execFile)('tar', ['-xf', inject('databaseTemplate'), '-C', database]);
  await writeFile(`${database}.made`, '', { mode: 0o600 });
}
