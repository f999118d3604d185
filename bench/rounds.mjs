import { loads } from './loads.mjs';
import { shapesOf, turnShape } from './settings.mjs';
import { startTarget } from './targets/start-target.mjs';

/** @typedef {import('./loads.mjs').Result} Result */
/** @typedef {import('./targets/start-target.mjs').Target} Target */
/** @typedef {{ round: number, target: string, load: string } & Result} Measured */
/** @typedef {{ target: string, load: string }} Need */

/**
 * @typedef {object} Stage a target and its loads, in this order; it runs alone
 * @property {string} target
 * @property {string[]} loads
 * @property {object} [options]
 */

/**
 * One round. Open streams come first: a process does not return memory, and the growth is what counts. One request at a time
 * comes after many: in the seconds that it has, it would not make any process warm, and would measure compilers.
 *
 * @type {readonly Stage[]}
 */
const stages = [
  { target: 'direct', loads: ['streams', 'leaving', 'tokens', 'whole64', 'whole1'] },
  { target: 'raw-proxy', loads: ['streams', 'leaving', 'tokens', 'whole64', 'whole1'] },
  { target: 'bare-hop', loads: ['whole64', 'whole1'] },
  { target: 'portkey', loads: ['streams', 'leaving', 'tokens', 'whole64', 'whole1'] },
  { target: 'switchyard', loads: ['streams', 'leaving', 'tokens', 'whole64', 'whole1', 'turns16', 'turn1'] },
  { target: 'dbos', loads: ['turns16', 'turn1'] },
  { target: 'switchyard', loads: ['polls'], options: { countQueries: true } },
  { target: 'standalone', loads: ['streams', 'leaving', 'tokens', 'whole64', 'whole1', 'turns16', 'turn1'] },
];

/**
 * @typedef {object} Bench what every measurement needs
 * @property {import('./upstream/start-upstream.mjs').Upstream} upstream
 * @property {import('./settings.mjs').Settings} settings
 * @property {number} core of the targets
 * @property {(line: string) => void} say
 */

/**
 * Measures what is needed, round by round: each round starts every target afresh, one after the other, so that other activity of the machine
 * affects all of them.
 *
 * @param {Bench} bench
 * @param {readonly Need[]} needs
 * @returns {Promise<Measured[]>}
 */
export async function measureRounds(bench, needs) {
  /** @type {Measured[]} */
  const measured = [];
  const isNeeded = (/** @type {string} */ target, /** @type {string} */ load) => needs.some((need) => need.target === target && need.load === load);
  for (let round = 1; round <= bench.settings.rounds; round += 1) {
    for (const stage of stages) {
      const needed = stage.loads.filter((load) => isNeeded(stage.target, load));
      if (needed.length > 0) measured.push(...(await measureStage(bench, { ...stage, loads: needed }, round)));
    }
  }
  return measured;
}

/**
 * Starts a target, runs its loads, and stops it. A load that fails is reported and left out: the others are still useful.
 *
 * @param {Bench} bench
 * @param {Stage} stage
 * @param {number} round
 * @returns {Promise<Measured[]>}
 */
async function measureStage({ upstream, settings, core, say }, { target: name, loads: names, options = {} }, round) {
  const target = await open(name, { upstream, settings, core, options });
  /** @type {Measured[]} */
  const measured = [];
  try {
    for (const load of names) {
      const run = loads[load];
      if (run === undefined) throw new Error(`there is no load '${load}'`);
      const result = await run({ target, upstream, settings });
      measured.push({ round, target: name, load, ...result });
      say(`round ${round}  ${name}  ${load}: ${summaryOf(result)}`);
    }
  } finally {
    await target.stop();
  }
  return measured;
}

/**
 * @param {string} name
 * @param {{ upstream: Bench['upstream'], settings: Bench['settings'], core: number | null, options?: object }} how
 * @returns {Promise<Target>}
 */
export async function open(name, { upstream, settings, core, options = {} }) {
  if (name === 'direct') return { name, facts: { roots: [], routerUrl: upstream.url }, call: async () => null, stop: async () => {} };
  return startTarget(name, { core, options: { upstreamUrl: upstream.url, shapes: shapesOf(settings), turnShape, ...options } });
}

/** @param {Result} result */
function summaryOf({ figures, failures }) {
  const pairs = Object.entries(figures).map(([name, value]) => `${name} ${value === null ? 'none' : Number(value.toPrecision(4))}`);
  return [...pairs, ...(failures.count > 0 ? [`FAILURES ${failures.count}: ${failures.messages.join(' / ')}`] : [])].join(', ');
}
