import { EVENT_RECEIVER } from './load/event-webhooks.mjs';
import { loads } from './loads.mjs';
import { PREAMBLE_DELAY_MS, shapesOf, TURN_DELAY_MS } from './settings.mjs';
import { startTarget } from './targets/start-target.mjs';

/** @typedef {import('./loads.mjs').Result} Result */
/** @typedef {import('./targets/start-target.mjs').Target} Target */
/** @typedef {import('./settings.mjs').Settings} Settings */
/** @typedef {import('./shape.mjs').Traffic} Traffic */
/** @typedef {{ round: number, traffic: Traffic, target: string, load: string } & Result} Measured */
/** @typedef {{ target: string, load: string }} Need */

/**
 * @typedef {object} Stage a target and its loads, in this order; it runs alone
 * @property {string} target
 * @property {string[]} loads
 * @property {object} [options]
 * @property {boolean} [isOnAllCores] what is measured is one process of several, which must not wait for the others
 */

/**
 * One round. Open streams come first: a process does not return memory, and the growth is what counts. One request at a time
 * comes after many: in the seconds that it has, it would not make any process warm, and would measure compilers.
 *
 * @type {readonly Stage[]}
 */
const stages = [
  { target: 'direct', loads: ['streams', 'leaving', 'tokens', 'whole64', 'whole1'] },
  { target: 'raw-proxy', loads: ['streams', 'leaving', 'tokens', 'whole64', 'whole1', 'prompt1k', 'prompt100k', 'prompt1m'] },
  { target: 'bare-hop', loads: ['whole64', 'whole1'] },
  { target: 'portkey', loads: ['streams', 'leaving', 'tokens', 'whole64', 'whole1', 'prompt1k', 'prompt100k', 'prompt1m'] },
  {
    target: 'switchyard',
    loads: [
      ...['streams', 'leaving', 'tokens', 'whole64', 'whole1', 'prompt1k', 'prompt100k', 'prompt1m'],
      ...['turns16', 'turn1', 'posts16', 'toolEvents16', 'logPages', 'repeats16', 'deliveries16'],
    ],
  },
  { target: 'co-located', loads: ['tokens', 'whole64', 'whole1', 'turns16', 'turn1'] },
  { target: 'billed', loads: ['slowReaders', 'tokens', 'whole64', 'whole1', 'steady', 'admission64', 'admission1'] },
  { target: 'dbos', loads: ['turns16', 'turn1'] },
  { target: 'switchyard', loads: ['polls'], options: { countQueries: true } },
  { target: 'switchyard', loads: ['events'], options: { allowHosts: EVENT_RECEIVER }, isOnAllCores: true },
  { target: 'switchyard', loads: ['engineTurns16', 'engineTurn1', 'engineSnapshot', 'enginePrompt'], options: { engine: { delayMs: TURN_DELAY_MS } } },
  { target: 'switchyard', loads: ['preambles'], options: { engine: { delayMs: PREAMBLE_DELAY_MS, hasPreamble: true } } },
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
 * Measures what is needed, round after round: each round starts every target afresh for each traffic, one after the other, so that whatever else the
 * machine does meanwhile meets all of them.
 *
 * @param {Omit<Bench, 'settings'> & { settings: Record<Traffic, Settings>, traffics: readonly Traffic[], rounds: number }} bench
 * @param {readonly Need[]} needs
 * @returns {Promise<Measured[]>}
 */
export async function measureRounds({ settings, traffics, rounds, ...bench }, needs) {
  /** @type {Measured[]} */
  const measured = [];
  const isNeeded = (/** @type {string} */ target, /** @type {string} */ load) => needs.some((need) => need.target === target && need.load === load);
  for (let round = 1; round <= rounds; round += 1) {
    for (const stage of stages) {
      const needed = stage.loads.filter((load) => isNeeded(stage.target, load));
      if (needed.length === 0) continue;
      for (const traffic of traffics) {
        const results = await measureStage({ ...bench, settings: settings[traffic] }, { ...stage, loads: needed }, `round ${round}  ${traffic}`);
        measured.push(...results.map((result) => ({ round, traffic, ...result })));
      }
    }
  }
  return measured;
}

/**
 * Starts a target, runs its loads, and stops it. A load that fails is reported and left out: the others are still useful.
 *
 * @param {Bench} bench
 * @param {Stage} stage
 * @param {string} title of the progress lines
 * @returns {Promise<({ target: string, load: string } & Result)[]>}
 */
async function measureStage({ upstream, settings, core, say }, { target: name, loads: names, options = {}, isOnAllCores = false }, title) {
  const target = await open(name, { upstream, settings, core: isOnAllCores ? null : core, options });
  /** @type {({ target: string, load: string } & Result)[]} */
  const measured = [];
  try {
    for (const load of names) {
      const run = loads[load];
      if (run === undefined) throw new Error(`there is no load '${load}'`);
      const result = await run({ target, upstream, settings });
      measured.push({ target: name, load, ...result });
      say(`${title}  ${name}  ${load}: ${summaryOf(result)}`);
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
  return startTarget(name, { core, options: { upstreamUrl: upstream.url, shapes: shapesOf(settings), turnShape: settings.shapes.turn, ...options } });
}

/** @param {Result} result */
function summaryOf({ figures, failures }) {
  const pairs = Object.entries(figures).map(([name, value]) => `${name} ${value === null ? 'none' : Number(value.toPrecision(4))}`);
  return [...pairs, ...(failures.count > 0 ? [`FAILURES ${failures.count}: ${failures.messages.join(' / ')}`] : [])].join(', ');
}
