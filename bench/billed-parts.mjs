import { execFileSync } from 'node:child_process';
import { prepare } from '../scripts/prepare.mjs';
import { loads } from './loads.mjs';
import { allowedCores } from './machine.mjs';
import { open } from './rounds.mjs';
import { fullSettings } from './settings.mjs';
import { stopTargets } from './targets/start-target.mjs';
import { startUpstream } from './upstream/start-upstream.mjs';

/** @typedef {import('./targets/deployment-files.mjs').BilledPart} BilledPart */
/** @typedef {{ all: number, byProcess: Record<string, number> }} Micros of CPU per request */

const ROUNDS = Number(process.argv[2] ?? 8);
const WINDOW = { warmMs: 300, measureMs: 4_000 };
const PROCESSES = ['router-gateway', 'router-worker', 'nats', 'postgres', 'redis'];
const MICROS_PER_MS = 1_000;
/** Whole requests need no more; at rest, other processes would take a share of the core. */
const ROLES = { counts: { 'agent-gateway': 0, 'actor-host': 0, 'effect-worker': 0 } };

/** A reservation needs prices, so both are left out together. @type {readonly { name: string, target: string, without: readonly BilledPart[] }[]} */
const ARMS = [
  { name: 'all', target: 'billed', without: [] },
  { name: 'without traces', target: 'billed', without: ['traces'] },
  { name: 'without calls at once', target: 'billed', without: ['slots'] },
  { name: 'without rates', target: 'billed', without: ['rates'] },
  { name: 'without a credit limit', target: 'billed', without: ['limit'] },
  { name: 'without a credit limit and prices', target: 'billed', without: ['limit', 'prices'] },
  { name: 'plain', target: 'switchyard', without: [] },
];

await prepare({ build: true, bench: true, print: console.error });
const [own, core] = allowedCores();
if (own === undefined || core === undefined) throw new Error('two cores are needed');
execFileSync('taskset', ['-acp', String(own), String(process.pid)], { stdio: 'ignore' });
process.env.BENCH_OWN_CORE = String(own);
const settings = fullSettings('plain');
const upstream = await startUpstream();
try {
  const targets = [];
  for (const { name, target, without } of ARMS)
    targets.push({ name, target: await open(target, { upstream, settings, core, options: { ...ROLES, without } }) });
  for (const { name, target } of targets) {
    console.error(`warming: ${name}`);
    await loads.whole64?.({ target, upstream, settings });
  }
  /** @type {Map<string, Micros[]>} */
  const measured = new Map(ARMS.map(({ name }) => [name, []]));
  for (let round = 0; round < ROUNDS; round += 1) {
    // Another one is first each time, and every second time they go backwards.
    const order = [...targets.slice(round % targets.length), ...targets.slice(0, round % targets.length)];
    for (const { name, target } of round % 2 === 0 ? order : order.reverse()) measured.get(name)?.push(await window(target));
    console.error(`round ${round + 1} of ${ROUNDS}`);
  }
  print(measured);
} finally {
  await stopTargets();
}
process.exit();

/** @param {import('./targets/start-target.mjs').Target} target @returns {Promise<Micros>} */
async function window(target) {
  const result = await loads.whole64?.({ target, upstream, settings: { ...settings, whole: WINDOW, warmRequests: 0 } });
  if (result === undefined || result.failures.count > 0) throw new Error(`requests failed: ${result?.failures.messages.join(' / ')}`);
  const byProcess = Object.fromEntries(PROCESSES.map((name) => [name, (result.cpuByProcess[name] ?? 0) * MICROS_PER_MS]));
  return { all: (result.figures.cpuPerThousand ?? 0) * MICROS_PER_MS, byProcess };
}

/** Each against all of the same round. @param {Map<string, Micros[]>} measured */
function print(measured) {
  const all = measured.get('all') ?? [];
  console.log(`| µs of CPU per request | all processes | less than all (standard error) | of plain | ${PROCESSES.join(' | ')} |`);
  console.log(`|---|${'---|'.repeat(3 + PROCESSES.length)}`);
  for (const [name, rounds] of measured) {
    const less = rounds.map((one, index) => (all[index]?.all ?? 0) - one.all);
    const ratios = rounds.map((one, index) => one.all / (measured.get('plain')?.[index]?.all ?? 0));
    const cells = PROCESSES.map((process) => mean(rounds.map(({ byProcess }) => byProcess[process] ?? 0)).toFixed(0));
    const error = (/** @type {number[]} */ values, /** @type {number} */ digits) =>
      `${mean(values).toFixed(digits)} (${standardError(values).toFixed(digits)})`;
    console.log(`| ${name} | ${mean(rounds.map((one) => one.all)).toFixed(0)} | ${error(less, 0)} | ${error(ratios, 2)} | ${cells.join(' | ')} |`);
  }
}

/** @param {readonly number[]} values */
function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** @param {readonly number[]} values */
function standardError(values) {
  const middle = mean(values);
  return Math.sqrt(values.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (values.length - 1) / values.length);
}
