import { type ChildProcess, spawn } from 'node:child_process';
import { devNull } from 'node:os';
import { fileURLToPath } from 'node:url';
import { afterAll, expect } from 'vitest';
import { settingGroups } from '../../scripts/settings.mjs';

/** How a program ended: one of the two is null. */
export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export interface RunningProgram {
  pid: number;
  /** Its output so far, both streams in the order received. */
  output(): string;
  /** Text for its standard input. */
  type(text: string): void;
  signal(name: NodeJS.Signals): void;
  exited: Promise<Exit>;
  hasExited(): boolean;
}

export interface ProgramOptions {
  /** Default: the root of the clone. */
  cwd?: string;
  /** Added to an environment without any setting of Switchyard; undefined removes a variable. */
  env?: Record<string, string | undefined>;
}

export const root = fileURLToPath(new URL('../..', import.meta.url));

/** Bound of the recorded output, whose end explains a failure; a program that prints more is in a loop. */
const MAX_OUTPUT_CHARS = 1024 * 1024;

const running = new Set<ChildProcess>();
const killAll = () => {
  for (const { pid } of running) if (pid !== undefined) killGroup(pid);
};
/** A test that timed out goes on behind the end of its file, and could start another program then. */
let endedFile: string | undefined;
afterAll(() => {
  endedFile = expect.getState().testPath;
  killAll();
});
// A vitest worker that is terminated in the middle of a test runs no hooks.
process.on('exit', killAll);

/** Starts a program as from a shell, without variables of the test runner. It is killed at the end of the test file. */
export function runProgram([command = '', ...args]: string[], { cwd = root, env = {} }: ProgramOptions = {}): RunningProgram {
  if (endedFile !== undefined && endedFile === expect.getState().testPath) throw new Error(`${command} is not started: the test file has ended`);
  // A process group, since npm starts programs too: all of them end with the test file.
  const child = spawn(command, args, { cwd, env: { ...plainEnvironment(), ...env }, stdio: ['pipe', 'pipe', 'pipe'], detached: true });
  running.add(child);
  let output = '';
  const keep = (bytes: Buffer) => {
    output = (output + bytes.toString('utf8')).slice(-MAX_OUTPUT_CHARS);
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  // Input to a program that has just ended is no failure of the test.
  child.stdin.on('error', () => {});
  const exited = new Promise<Exit>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      running.delete(child);
      resolve({ code, signal });
    });
  });
  return {
    pid: child.pid ?? -1,
    output: () => output,
    type: (text) => void child.stdin.write(text),
    signal: (name) => void child.kill(name),
    exited,
    hasExited: () => child.exitCode !== null || child.signalCode !== null,
  };
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended, and its output has not: the others are killed all the same.
  }
}

/** The environment of this process without variables of the test runner and without Switchyard's settings. */
export function plainEnvironment(): NodeJS.ProcessEnv {
  const ours = new Set(settingGroups.flatMap((group) => group.settings.map(({ name }) => name)));
  const foreign = ({ name }: { name: string }) => ours.has(name) || /^(?:NODE_ENV|NODE_OPTIONS|TEST|VITEST.*|npm_.*|OTEL_.*)$/.test(name);
  // An empty file in place of the developer's own `.env`.
  return { ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !foreign({ name }))), SWITCHYARD_ENV_FILE: devNull };
}
