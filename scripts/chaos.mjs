import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { addFigures, newFigures, printFigures } from './chaos-figures.mjs';
import { prepare } from './prepare.mjs';
import { interruptible, runChild } from './run-child.mjs';
import { runScript } from './run-script.mjs';
import { ensureTestPrograms } from './servers/test-programs.mjs';

/** @typedef {import('./chaos-figures.mjs').Figures} Figures */
/** @typedef {{ repeat: number, untilMs: number, seed: number }} Plan the passes end with whichever limit is reached first */

const CLONE = fileURLToPath(new URL('..', import.meta.url));
const MINUTE_MS = 60_000;
const PROJECTS = ['--project', 'timed', '--project', 'servers'];
/** The faults under load, and those in the middle of each part of a turn. */
const FILES = ['tests/chaos/chaos.test.ts', 'tests/chaos/engine/engine.test.ts'];
/** Seeds are integers below this. */
const SEEDS = 2 ** 31;

const usage = `Usage: npm run chaos                                  one pass with a random seed
       npm run chaos -- --repeat 10                 ten passes
       npm run chaos -- --minutes 30                new passes begin for 30 minutes
       npm run chaos -- --seed 7                    the first pass has seed 7, the next 8 and so on

A pass starts a cluster on this machine and sends it requests: conversations, runs with
tool calls and callbacks, streams. Meanwhile it kills, stops, restarts and rolls back
processes and servers; the seed decides the order and the moments. At the end it checks
that the stores contain the outcome of every accepted request. Before that it kills each
kind of process in the middle of each part of turns that have policies, tools, a routine
and a search. A pass takes some five minutes.

It prints one line per pass, then a summary of all passes. The exit code is 0 if every
check succeeded. The report of a failed pass is printed with its seed.`;

const plan = planFrom(process.argv.slice(2));
if (plan === 'help') process.stdout.write(`${usage}\n`);
else if (typeof plan === 'string') {
  console.error(`${plan}\n\n${usage}`);
  process.exitCode = 2;
} else await runScript(() => chaos(plan));

/** @param {Plan} wanted */
async function chaos({ repeat, untilMs, seed }) {
  await prepare({ tests: true, build: true });
  await ensureTestPrograms();
  const all = newFigures();
  /** @type {number[]} */
  const failed = [];
  let passes = 0;
  await interruptible(async (signal) => {
    for (; passes < repeat && (passes === 0 || Date.now() < untilMs); passes += 1) {
      const { held, figures, output, seconds } = await pass(seed + passes, signal);
      if (figures !== null) addFigures(all, figures);
      console.log(
        `seed ${seed + passes}: ${held ? 'all held' : 'FAILED'} in ${seconds} s; ${figures === null ? 'nothing was counted' : printFigures(figures)}`,
      );
      if (held) continue;
      failed.push(seed + passes);
      console.log(output);
    }
  });
  console.log(`\n${passes} passes, ${passes - failed.length} held. ${printFigures(all)}`);
  if (failed.length === 0) return;
  console.log(`Failed: ${failed.map((one) => `npm run chaos -- --seed ${one}`).join(', ')}`);
  process.exitCode = 1;
}

/** @param {number} seed @param {AbortSignal} signal @returns {Promise<{ held: boolean, figures: Figures | null, output: string, seconds: number }>} */
async function pass(seed, signal) {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-chaos-figures-'));
  const path = join(folder, 'figures.json');
  const vitest = join(CLONE, 'node_modules', 'vitest', 'vitest.mjs');
  const startedAtMs = Date.now();
  try {
    const { code, output } = await runChild(process.execPath, [vitest, 'run', ...PROJECTS, ...FILES, '--reporter', 'verbose'], {
      cwd: CLONE,
      env: { ...process.env, CHAOS_SEED: String(seed), CHAOS_FIGURES: path, NO_COLOR: '1' },
      signal,
    });
    return { held: code === 0, figures: readFigures(path), output, seconds: Math.round((Date.now() - startedAtMs) / 1_000) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** @param {string} path @returns {Figures | null} null: the pass did not finish */
function readFigures(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return null;
  }
}

/** @param {string[]} args @returns {Plan | 'help' | string} a string is the error text */
function planFrom(args) {
  const number = /** @type {const} */ ({ type: 'string' });
  try {
    const { values } = parseArgs({ args, options: { repeat: number, minutes: number, seed: number, help: { type: 'boolean' } } });
    if (values.help) return 'help';
    const { repeat, minutes, seed = String(Math.floor(Math.random() * SEEDS)) } = values;
    for (const [name, value] of Object.entries({ repeat, minutes, seed })) {
      if (value !== undefined && !/^\d{1,10}$/.test(value)) return `--${name} has to be a whole number, not ${value}.`;
    }
    return {
      repeat: repeat === undefined ? (minutes === undefined ? 1 : Infinity) : Number(repeat),
      untilMs: minutes === undefined ? Infinity : Date.now() + Number(minutes) * MINUTE_MS,
      seed: Number(seed),
    };
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
