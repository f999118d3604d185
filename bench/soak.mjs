import { setTimeout as delay } from 'node:timers/promises';
import { slopeOf } from './figures.mjs';
import { streamed, whole } from './loads.mjs';
import { readUsage } from './process-usage.mjs';
import { alignedTable } from './report.mjs';
import { open } from './rounds.mjs';

/** @typedef {import('./rounds.mjs').Bench} Bench */
/** @typedef {{ atMs: number, bytes: Map<string, number> }} Sample of the memory of each process */

const MIB = 1_024 * 1_024;
const MINUTE_MS = 60_000;
const SAMPLE_EVERY_MS = 5_000;
/** Of the whole time: heaps, caches and the database's buffers fill. */
const WARM_UP = 0.3;
const WHOLE_IN_FLIGHT = 16;
const STREAMS = 100;

/**
 * Holds one load on the billed setting for a long time, streams and whole requests at once, and shows how the memory of each process develops.
 *
 * @param {Bench} bench
 * @param {{ minutes: number }} how
 * @returns {Promise<string>} Markdown
 */
export async function soak({ upstream, settings, core, say }, { minutes }) {
  const target = await open('billed', { upstream, settings, core });
  try {
    const times = { warmMs: 0, measureMs: minutes * MINUTE_MS };
    const setting = { target, upstream, settings };
    /** @type {Sample[]} */
    const samples = [];
    const sampling = sampleUntil(delay(times.measureMs), () => {
      samples.push({ atMs: performance.now(), bytes: new Map(readUsage(target.facts.roots).map(({ name, memoryBytes }) => [name, memoryBytes])) });
    });
    const [requests, streams] = await Promise.all([
      whole(setting, { inFlight: WHOLE_IN_FLIGHT, times }),
      streamed(setting, { ...settings.tokens, ...times, streams: STREAMS }),
    ]);
    await sampling;
    say(`soak: ${requests.count} requests, ${streams.figures.streams} streams in ${minutes} min`);
    const failed = [...requests.failures.messages, ...streams.failures.messages];
    const did = `${requests.count} whole requests and ${streams.figures.streams} streams in ${minutes} min, ${requests.failures.count + streams.failures.count} failed${failed.length === 0 ? '' : `: ${failed.join(' / ')}`}.`;
    return `${did}\n\n${memoryTable(samples)}`;
  } finally {
    await target.stop();
  }
}

/** @param {Promise<void>} over @param {() => void} sample */
async function sampleUntil(over, sample) {
  let isOver = false;
  const ended = over.then(() => {
    isOver = true;
  });
  while (!isOver) {
    sample();
    await Promise.race([delay(SAMPLE_EVERY_MS), ended]);
  }
}

/** @param {readonly Sample[]} samples */
function memoryTable(samples) {
  const [first] = samples;
  const last = samples.at(-1);
  if (first === undefined || last === undefined) return '';
  const warmAtMs = first.atMs + (last.atMs - first.atMs) * WARM_UP;
  const warm = samples.filter(({ atMs }) => atMs >= warmAtMs);
  const lines = [...first.bytes.keys()].map((name) => {
    const points = warm.map(({ atMs, bytes }) => ({ x: atMs / MINUTE_MS, y: (bytes.get(name) ?? 0) / MIB }));
    const at = (/** @type {Sample | undefined} */ sample) => ((sample?.bytes.get(name) ?? 0) / MIB).toFixed(1);
    return [name, at(first), at(warm[0]), at(last), slopeOf(points)?.toFixed(2) ?? 'none'];
  });
  return alignedTable(['process', 'at first, MB', 'after the warm-up', 'at the end', 'slope since the warm-up, MB/min'], lines);
}
