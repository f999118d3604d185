import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { slopeOf } from './figures.mjs';
import { alignedTable } from './report.mjs';

/** @typedef {{ atMs: number, bytes: Map<string, number> }} Sample of the memory of each process */
/** @typedef {{ rss: number, heapUsed: number, external: number, arrayBuffers: number }} InUse bytes; `rss` before, and the others behind a collection of all garbage */
/** @typedef {{ name: string, messages: number, bytes: number, waiting: number }} Stream `waiting`: for all of its consumers, delivered or not */

const MIB = 1_024 * 1_024;
const MINUTE_MS = 60_000;
/** Of the whole time: until then heaps, caches and the database's buffers fill. */
const WARM_UP = 0.5;
/** A sample that is later than this shows that processes, the sampler too, did not run. */
const STALL_MS = 1_000;

/** @param {number} bytes */
const mib = (bytes) => (bytes / MIB).toFixed(1);

/**
 * The memory of each process over time. A process is flat if the line through the samples of the second half does not rise.
 *
 * @param {readonly Sample[]} samples
 */
export function growthTable(samples) {
  const [first] = samples;
  const last = samples.at(-1);
  if (first === undefined || last === undefined) return '';
  const between = (/** @type {number} */ part) => first.atMs + (last.atMs - first.atMs) * part;
  const slope = (/** @type {string} */ name, /** @type {number} */ from, /** @type {number} */ to) => {
    const points = samples
      .filter(({ atMs }) => atMs >= from && atMs <= to)
      .map(({ atMs, bytes }) => ({ x: atMs / MINUTE_MS, y: (bytes.get(name) ?? 0) / MIB }));
    return slopeOf(points)?.toFixed(2) ?? 'none';
  };
  const middle = samples.find(({ atMs }) => atMs >= between(WARM_UP));
  const lines = [...first.bytes.keys()].map((name) => [
    name,
    ...[first, middle, last].map((sample) => mib(sample?.bytes.get(name) ?? 0)),
    slope(name, first.atMs, between(WARM_UP)),
    slope(name, between(WARM_UP), last.atMs),
  ]);
  return alignedTable(['process', 'at first, MB', 'in the middle', 'at the end', 'slope of the first half, MB/min', 'of the second'], lines);
}

/** @param {string} folder of `profile/memory-on-signal.mjs` @returns {Map<string, InUse[]>} by process */
export function readInUse(folder) {
  const files = readdirSync(folder).filter((name) => name.endsWith('.jsonl'));
  return new Map(files.map((file) => [file.replace(/\.jsonl$/, ''), linesOf(readFileSync(join(folder, file), 'utf8'))]));
}

/** @param {string} text @returns {InUse[]} */
function linesOf(text) {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

/**
 * What is in use in each process of Node, once all garbage is collected: what grows here is a leak.
 *
 * @param {ReadonlyMap<string, readonly InUse[]>} processes
 * @param {readonly number[]} minutes of the looks
 */
export function inUseTable(processes, minutes) {
  const lines = [...processes].map(([name, looks]) => [
    name,
    ...minutes.map((_, index) => {
      const one = looks[index];
      return one === undefined ? 'none' : `${mib(one.heapUsed)} + ${mib(one.external)} of ${mib(one.rss)}`;
    }),
  ]);
  return alignedTable(['in use: heap + outside of it, of all before', ...minutes.map((minute) => `after ${minute.toFixed(1)} min, MB`)], lines);
}

/** @param {string} url of the broker's monitoring @returns {Promise<Stream[]>} */
export async function readBroker(url) {
  const response = await fetch(`${url}/jsz?accounts=true&streams=true&consumers=true`);
  /** @type {any} */
  const { account_details: accounts = [] } = await response.json();
  return accounts.flatMap((/** @type {any} */ account) =>
    (account.stream_detail ?? []).map((/** @type {any} */ { name, state, consumer_detail: consumers = [] }) => ({
      name,
      messages: state.messages,
      bytes: state.bytes,
      waiting: consumers.reduce((/** @type {number} */ sum, /** @type {any} */ one) => sum + (one.num_pending ?? 0) + (one.num_ack_pending ?? 0), 0),
    })),
  );
}

/** @param {readonly Stream[][]} looks @param {readonly number[]} minutes of the looks */
export function brokerTable(looks, minutes) {
  const names = [...new Set(looks.flat().map(({ name }) => name))].filter((name) =>
    looks.some((streams) => streams.some((one) => one.name === name && one.messages > 0)),
  );
  const lines = names.map((name) => [
    name,
    ...looks.map((streams) => {
      const one = streams.find((stream) => stream.name === name);
      return one === undefined ? 'none' : `${one.messages}, ${mib(one.bytes)} MB, ${one.waiting} waiting`;
    }),
  ]);
  return alignedTable(['stream: messages', ...minutes.map((minute) => `after ${minute.toFixed(1)} min`)], lines);
}

/**
 * Where samples were late: other programs had the cores.
 *
 * @param {readonly Sample[]} samples
 * @param {number} everyMs
 */
export function stallsOf(samples, everyMs) {
  const stalls = samples.flatMap(({ atMs }, index) => {
    const before = samples[index - 1];
    const lateMs = before === undefined ? 0 : atMs - before.atMs - everyMs;
    return lateMs > STALL_MS ? [`${(lateMs / 1_000).toFixed(1)} s after ${((atMs - (samples[0]?.atMs ?? 0)) / MINUTE_MS).toFixed(1)} min`] : [];
  });
  return stalls.length === 0 ? 'No sample was late.' : `Samples were late: ${stalls.join(', ')}.`;
}
