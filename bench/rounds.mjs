import { watchMachine } from './foreign-load.mjs';
import { EVENT_RECEIVER } from './load/event-webhooks.mjs';
import { loads } from './loads.mjs';
import { memoryLatencyNs } from './memory-latency.mjs';
import { PREAMBLE_DELAY_MS, shapesOf, TURN_DELAY_MS, windowSettings } from './settings.mjs';
import { startTarget } from './targets/start-target.mjs';

/** @typedef {import('./loads.mjs').Result} Result */
/** @typedef {import('./targets/start-target.mjs').Target} Target */
/** @typedef {import('./settings.mjs').Settings} Settings */
/** @typedef {import('./shape.mjs').Traffic} Traffic */
/** @typedef {{ round: number, traffic: Traffic, target: string, load: string } & Result} Measured */
/** @typedef {{ target: string, load: string }} Need */

/**
 * @typedef {object} Stage targets that run side by side, and loads, in this order: each load meets all targets within seconds of each other, and one at a time
 * @property {string[]} targets
 * @property {string[]} loads
 * @property {object} [options] of the targets
 * @property {boolean} [isOnAllCores] what is measured is one process of several, which must not wait for the others
 */

const AT_ROUTERS = ['direct', 'raw-proxy', 'bare-hop', 'portkey', 'switchyard', 'former-settings', 'co-located', 'billed', 'standalone'];
const AT_AGENTS = ['switchyard', 'former-settings', 'co-located', 'dbos', 'standalone'];

/**
 * One round. Open streams come first: a process does not return memory, and the growth is what counts. Whole requests
 * at 64 in flight come before one at a time, and before streams that begin or end together: in the seconds that these have, they would not make any process warm,
 * and would measure compilers.
 *
 * @type {readonly Stage[]}
 */
const stages = [
  {
    targets: AT_ROUTERS,
    loads: [
      ...['streams', 'slowReaders', 'whole64', 'whole1', 'tokens', 'leaving', 'leavingAtOnce', 'bursts', 'prompt1k', 'prompt100k', 'prompt1m'],
      ...['answer16', 'answer200', 'answerTools', 'answerReasoning', 'steady', 'admission64', 'admission1'],
    ],
  },
  { targets: AT_AGENTS, loads: ['turns16', 'turn1', 'turnsShort', 'turnsLong', 'posts16', 'toolEvents16', 'logPages', 'repeats16', 'deliveries16'] },
  { targets: ['switchyard'], loads: ['turns64OneHost'], isOnAllCores: true },
  { targets: ['switchyard'], loads: ['turns64TwoHosts'], options: { counts: { 'actor-host': 2 } }, isOnAllCores: true },
  { targets: ['switchyard'], loads: ['polls'], options: { countQueries: true } },
  { targets: ['switchyard'], loads: ['events'], options: { allowHosts: EVENT_RECEIVER }, isOnAllCores: true },
  { targets: ['switchyard'], loads: ['engineTurns16', 'engineTurn1', 'engineSnapshot', 'enginePrompt'], options: { engine: { delayMs: TURN_DELAY_MS } } },
  { targets: ['switchyard'], loads: ['preambles'], options: { engine: { delayMs: PREAMBLE_DELAY_MS, hasPreamble: true } } },
];

/** The most that other programs may use while a load is measured, in cores. One that met more is repeated, and the quietest result is kept. */
const FOREIGN_CORES = 0.15;
/**
 * Loads that can stop and go on: they go through their targets several times in a round, each time for a part of their window, since the cost of the same work
 * differs by half within a minute where other virtual machines share the caches.
 */
const ALTERNATING = new Set(['whole64', 'whole1', 'prompt1k', 'prompt100k', 'prompt1m', 'turns16', 'turn1', 'turnsShort', 'turnsLong']);
/** Loads that are compared with each other at one target: they go by turns, too. */
const PAIR = ['turnsShort', 'turnsLong'];
/** They measure growth from a process that has not had the load yet. */
const ONCE = new Set(['streams', 'slowReaders', 'polls', 'events']);

/** @param {string} target @returns {string[]} names */
export function loadsOf(target) {
  return stages.filter((stage) => stage.targets.includes(target)).flatMap(({ loads: names }) => names);
}

/** What a load's target is started with in a round. @param {string} target @param {string} load */
export function optionsOf(target, load) {
  return stages.find((stage) => stage.targets.includes(target) && stage.loads.includes(load))?.options ?? {};
}

/**
 * @typedef {object} Bench what every measurement needs
 * @property {import('./upstream/start-upstream.mjs').Upstream} upstream
 * @property {import('./settings.mjs').Settings} settings
 * @property {number} core of the targets
 * @property {(line: string) => void} say
 */

/**
 * Measures what is needed, round after round: each round starts the targets of a stage afresh for each traffic, and each load goes through all of them, so
 * that whatever else the machine does meanwhile meets all of them.
 *
 * @param {Omit<Bench, 'settings'> & { settings: Record<Traffic, Settings>, traffics: readonly Traffic[], rounds: number }} bench
 * @param {readonly Need[]} needs
 * @returns {Promise<Measured[]>}
 */
export async function measureRounds({ settings, traffics, rounds, ...bench }, needs) {
  /** @type {Measured[]} */
  const measured = [];
  for (let round = 1; round <= rounds; round += 1) {
    for (const stage of stages) {
      for (const traffic of traffics) {
        const results = await measureStage({ ...bench, settings: settings[traffic] }, stage, { needs, title: `round ${round}  ${traffic}` });
        measured.push(...results.map((result) => ({ round, traffic, ...result })));
      }
    }
  }
  return measured;
}

/**
 * Starts the targets that are needed, runs their loads, and stops them.
 *
 * @param {Bench} bench
 * @param {Stage} stage
 * @param {{ needs: readonly Need[], title: string }} of `title` of the progress lines
 * @returns {Promise<({ target: string, load: string } & Result)[]>}
 */
async function measureStage(bench, { targets: names, loads: loadNames, options = {}, isOnAllCores = false }, { needs, title }) {
  const isNeeded = (/** @type {string} */ target, /** @type {string} */ load) => needs.some((need) => need.target === target && need.load === load);
  const { upstream, settings } = bench;
  /** @type {Target[]} */
  const targets = [];
  /** @type {({ target: string, load: string } & Result)[]} */
  const measured = [];
  try {
    for (const name of names.filter((target) => loadNames.some((load) => isNeeded(target, load))))
      targets.push(await open(name, { upstream, settings, core: isOnAllCores ? null : bench.core, options }));
    for (const group of groupsOf(loadNames)) {
      const isAlternating = group.every((load) => ALTERNATING.has(load));
      const runs = group.flatMap((load) => targets.flatMap((target) => (isNeeded(target.name, load) ? [{ load, target }] : [])));
      for (let window = 0; window < (isAlternating ? settings.windows : 1); window += 1) {
        // The other way round each time, so that none always follows the same one.
        for (const { load, target } of window % 2 === 0 ? runs : runs.toReversed()) {
          const result = await measureQuietly(load, { target, upstream, settings: isAlternating ? windowSettings(settings, window) : settings });
          measured.push({ target: target.name, load, ...result });
          bench.say(`${title}  ${target.name}  ${load}: ${summaryOf(result)}`);
        }
      }
    }
  } finally {
    await Promise.all(targets.map((target) => target.stop()));
  }
  return measured;
}

/** In their order. @param {readonly string[]} loadNames @returns {string[][]} */
function groupsOf(loadNames) {
  return loadNames.filter((load) => load !== PAIR[1]).map((load) => (load === PAIR[0] ? PAIR : [load]));
}

/**
 * Runs a load, again if other programs took too much of the machine meanwhile.
 *
 * @param {string} load
 * @param {import('./loads.mjs').Setting} setting
 * @returns {Promise<Result>}
 */
async function measureQuietly(load, setting) {
  const run = loads[load];
  if (run === undefined) throw new Error(`there is no load '${load}'`);
  /** @type {Result | null} */
  let quietest = null;
  for (let repeat = 0; repeat <= (ONCE.has(load) ? 0 : setting.settings.repeats); repeat += 1) {
    const watched = watchMachine(setting.target.facts.roots);
    const result = await run(setting);
    const machine = { ...watched(), memoryLatencyNs: memoryLatencyNs() };
    if (quietest === null || machine.foreignCores < (quietest.figures.foreignCores ?? 0)) quietest = { ...result, figures: { ...result.figures, ...machine } };
    if (machine.foreignCores <= FOREIGN_CORES) break;
  }
  if (quietest === null) throw new Error(`${load} was not run`);
  return quietest;
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
