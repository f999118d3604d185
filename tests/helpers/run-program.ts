import { type ChildProcess, spawn } from 'node:child_process';
import { devNull } from 'node:os';
import { fileURLToPath } from 'node:url';
import { afterAll } from 'vitest';
import { settingGroups } from '../../scripts/settings.mjs';

/** How a program ended: one of the two is null. */
export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export interface RunningProgram {
  pid: number;
  /** All that it has printed so far, both streams in the order they came. */
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
  /** On top of an environment without any setting of Switchyard; undefined takes a variable away. */
  env?: Record<string, string | undefined>;
}

export const root = fileURLToPath(new URL('../..', import.meta.url));

/** More than this means a program that prints in a loop; the end of it is what explains a failure. */
const MAX_OUTPUT_CHARS = 1024 * 1024;

const running = new Set<ChildProcess>();
const killAll = () => {
  for (const { pid } of running) if (pid !== undefined) process.kill(-pid, 'SIGKILL');
};
afterAll(killAll);
// A worker that is told to end in the middle of a test runs no hooks.
process.on('exit', killAll);

/** Starts a program as a person would, with nothing of the test runner in its environment. It does not outlive the test file. */
export function runProgram([command = '', ...args]: string[], { cwd = root, env = {} }: ProgramOptions = {}): RunningProgram {
  // A group of its own, since npm starts programs too: all of them end with the test file.
  const child = spawn(command, args, { cwd, env: { ...plainEnvironment(), ...env }, stdio: ['pipe', 'pipe', 'pipe'], detached: true });
  running.add(child);
  let output = '';
  const keep = (bytes: Buffer) => {
    output = (output + bytes.toString('utf8')).slice(-MAX_OUTPUT_CHARS);
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  // Typing to a program that has just ended is no failure of the test.
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

/** The environment of this process without what the test runner put there and without Switchyard's settings, whatever the developer has set. */
export function plainEnvironment(): NodeJS.ProcessEnv {
  const ours = new Set(settingGroups.flatMap((group) => group.settings.map(({ name }) => name)));
  const foreign = ({ name }: { name: string }) => ours.has(name) || /^(?:NODE_ENV|NODE_OPTIONS|TEST|VITEST.*|npm_.*|OTEL_.*)$/.test(name);
  // Not the developer's own settings either: a file of none in place of the `.env` in the clone.
  return { ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !foreign({ name }))), SWITCHYARD_ENV_FILE: devNull };
}
