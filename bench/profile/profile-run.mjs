import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { loads } from '../loads.mjs';
import { alignedTable } from '../report.mjs';
import { open, optionsOf } from '../rounds.mjs';
import { summarise } from './summarise.mjs';

/** @typedef {import('../rounds.mjs').Bench} Bench */

const FUNCTIONS_SHOWN = 15;
/** The Node processes of a cluster; the others are not profiled. */
const NODE_PROCESSES = ['router-gateway', 'agent-gateway', 'actor-host', 'router-worker', 'effect-worker'];
/** The profile of a nearly idle process is left out: its CPU is mostly the profiler's. */
const LEAST_BUSY_PART = 0.02;
/** The profiler reads every function before it begins, which is not part of the load. */
const PROFILER_START_MS = 1_500;
const WRITTEN_TIMEOUT_MS = 30_000;
const LOOK_AGAIN_MS = 100;

/** What is profiled unless loads are named, and what each counts. @type {Record<string, string>} */
const UNITS = { whole64: 'request', tokens: 'token', turns16: 'turn' };

/**
 * CPU of one of what each load counts, by process and function. Profiling itself costs: these figures are for their proportions, not for the table.
 *
 * @param {Bench} bench
 * @param {{ loads: string[] | null, folder: string | null }} of `loads`: null: of one request, one token and one turn. `folder`: keeps the profiles,
 * in a folder per load; null: none is kept
 * @returns {Promise<string>} Markdown
 */
export async function profileRun(bench, { loads: names, folder: kept }) {
  const root = kept ?? mkdtempSync(join(tmpdir(), 'switchyard-bench-profile-'));
  try {
    const sections = [];
    for (const load of names ?? Object.keys(UNITS)) sections.push(await profileOf(load, bench, join(root, load)));
    return sections.join('\n');
  } finally {
    if (kept === null) rmSync(root, { recursive: true, force: true });
  }
}

/** @param {string} load @param {Bench} bench @param {string} folder for its profiles, made anew */
async function profileOf(load, { upstream, settings, core, say }, folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const target = await open('switchyard', { upstream, settings, core, options: { ...optionsOf('switchyard', load), profileFolder: folder } });
  try {
    const unit = UNITS[load] ?? `of ${load}`;
    say(`profile of one ${unit} …`);
    const onEnd = async () => void (await target.call('signal'));
    const onBegin = async () => {
      await target.call('signal');
      await delay(PROFILER_START_MS);
    };
    const { cpuByProcess } = (await loads[load]?.({ target, upstream, settings, hooks: { onBegin, onEnd } })) ?? empty;
    return [`### One ${unit}\n`, processTable(cpuByProcess, unit), ...(await functionTables(folder, { cpuByProcess, unit }))].join('\n');
  } finally {
    await target.stop();
  }
}

/** @type {{ cpuByProcess: Record<string, number> }} */
const empty = { cpuByProcess: {} };

/** @param {Record<string, number>} cpuByProcess seconds per 1,000 @param {string} unit */
function processTable(cpuByProcess, unit) {
  const lines = Object.entries(cpuByProcess).sort(([, one], [, other]) => other - one);
  return `${alignedTable(
    ['process', `µs of CPU per ${unit}`],
    lines.map(([name, seconds]) => [name, micros(seconds * 1_000)]),
  )}\n`;
}

/**
 * The profiler gives the share of each function, and the kernel the CPU of the process: by the profiler's own clock it is too
 * much, since it goes on while another process has the core.
 *
 * @param {string} folder
 * @param {{ cpuByProcess: Record<string, number>, unit: string }} of
 */
async function functionTables(folder, { cpuByProcess, unit }) {
  const files = await writtenProfiles(folder);
  const profiles = files.map((file) => {
    const process = file.replace(/-\d+\.cpuprofile$/, '');
    return { process, usOfCpu: (cpuByProcess[process] ?? 0) * 1_000, ...summarise(JSON.parse(readFileSync(join(folder, file), 'utf8'))) };
  });
  const all = profiles.reduce((sum, { busyUs }) => sum + busyUs, 0);
  return profiles
    .filter(({ busyUs }) => busyUs > all * LEAST_BUSY_PART)
    .sort((one, other) => other.usOfCpu - one.usOfCpu)
    .map(({ process, usOfCpu, busyUs, functions }) => {
      const lines = functions.slice(0, FUNCTIONS_SHOWN).map(({ name, place: index, selfUs }) => {
        const part = selfUs / busyUs;
        return [name, index, micros(part * usOfCpu), `${(part * 100).toFixed(1)} %`];
      });
      return `#### ${process}\n\n${alignedTable(['function', 'where', `µs per ${unit}`, 'of the process'], lines)}\n`;
    });
}

/** Waits until every process has written its profile down. @param {string} folder @returns {Promise<string[]>} their names */
async function writtenProfiles(folder) {
  for (const untilMs = Date.now() + WRITTEN_TIMEOUT_MS; Date.now() < untilMs; await delay(LOOK_AGAIN_MS)) {
    const names = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.cpuprofile')) : [];
    if (NODE_PROCESSES.every((role) => names.some((name) => name.startsWith(role)))) return names;
  }
  throw new Error('the profiles were not written in time');
}

/** @param {number} value */
function micros(value) {
  return value >= 100 ? value.toFixed(0) : value.toFixed(2);
}
