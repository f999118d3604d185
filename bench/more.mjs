import { commitsOf } from './load/commits.mjs';
import { whole } from './loads.mjs';
import { alignedTable } from './report.mjs';
import { open } from './rounds.mjs';
import { durableTurns } from './turn-loads.mjs';

/** @typedef {import('./rounds.mjs').Bench} Bench */
/** @typedef {import('./targets/start-target.mjs').Target} Target */
/** @typedef {import('./loads.mjs').Result} Result */

/**
 * Figures without a bar: long answers, two of each process on all cores, and commands per commit.
 *
 * @param {Bench} bench
 * @returns {Promise<string>} Markdown
 */
export async function measureMore(bench) {
  const sections = [
    ['Long answers', await answerTable(bench)],
    ['One and two processes, on all cores', await scaleTable(bench)],
    ['Commands in one commit', await batchTable(bench)],
  ];
  return sections.map(([title, table]) => `### ${title}\n\n${table}`).join('\n\n');
}

/** @param {Bench} bench */
async function answerTable(bench) {
  const { upstream, settings, core, say } = bench;
  const times = settings.whole;
  /** @type {string[][]} */
  const lines = [];
  for (const name of ['raw-proxy', 'portkey', 'switchyard']) {
    await using(bench, name, { core }, async (target) => {
      const setting = { target, upstream, settings };
      const long = await whole(setting, { inFlight: 64, times, shape: settings.shapes.long });
      lines.push([name, `answer of ${settings.shapes.long.tokens} tokens`, ...cellsOf(long)]);
      say(`more: ${name}, long answers`);
    });
  }
  return alignedTable(['target', 'request', 'CPU s per 1,000', 'per second', 'p50 ms', 'failed'], lines);
}

/** @param {Bench} bench */
async function scaleTable(bench) {
  const { upstream, settings, say } = bench;
  /** @type {string[][]} */
  const lines = [];
  for (const count of [1, 2]) {
    const counts = { 'router-worker': count, 'actor-host': count };
    await using(bench, 'switchyard', { core: null, options: { counts } }, async (target) => {
      const setting = { target, upstream, settings };
      lines.push([`${count} router worker`, 'requests at 64 in flight', ...cellsOf(await whole(setting, { inFlight: 64, times: settings.whole }))]);
      lines.push([`${count} actor host`, 'turns at 64 in flight', ...cellsOf(await durableTurns(setting, { inFlight: 64, ...settings.turns }))]);
      say(`more: ${count} of each`);
    });
  }
  return alignedTable(['processes', 'load', 'CPU s per 1,000', 'per second', 'p50 ms', 'failed'], lines);
}

/** @param {Bench} bench */
async function batchTable(bench) {
  const { upstream, settings, core, say } = bench;
  /** @type {string[][]} */
  const lines = [];
  await using(bench, 'switchyard', { core }, async (target) => {
    for (const inFlight of [1, 16, 128]) {
      let before = await commitsOf(target);
      let after = before;
      const onBegin = async () => {
        before = await commitsOf(target);
      };
      const onEnd = async () => {
        after = await commitsOf(target);
      };
      const { count } = await durableTurns({ target, upstream, settings, hooks: { onBegin, onEnd } }, { inFlight, ...settings.turns });
      const commits = after.commits - before.commits;
      const commands = after.commands - before.commands;
      lines.push([String(inFlight), String(count), String(commits), (commands / commits).toFixed(2), (commits / count).toFixed(2)]);
    }
    say('more: commands in one commit');
  });
  return alignedTable(['turns in flight', 'turns', 'commits', 'commands per commit', 'commits per turn'], lines);
}

/**
 * @param {Bench} bench
 * @param {string} name
 * @param {{ core: number | null, options?: object }} how
 * @param {(target: Target) => Promise<void>} measure
 */
async function using({ upstream, settings }, name, how, measure) {
  const target = await open(name, { upstream, settings, ...how });
  try {
    await measure(target);
  } finally {
    await target.stop();
  }
}

/** @param {Result} result */
function cellsOf({ figures: { cpuPerThousand, perSecond, p50Ms }, failures }) {
  return [...[cpuPerThousand, perSecond, p50Ms].map((value) => (value == null ? '' : String(Number(value.toPrecision(3))))), String(failures.count)];
}
