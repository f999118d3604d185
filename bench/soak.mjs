import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { watchMachine } from './foreign-load.mjs';
import { streamed, whole } from './loads.mjs';
import { readUsage } from './process-usage.mjs';
import { open } from './rounds.mjs';
import { brokerTable, growthTable, inUseTable, readBroker, readInUse, stallsOf } from './soak-report.mjs';

/** @typedef {import('./rounds.mjs').Bench} Bench */
/** @typedef {import('./soak-report.mjs').Sample} Sample */

const MINUTE_MS = 60_000;
const SAMPLE_EVERY_MS = 5_000;
/** Of the whole time: when garbage is collected in all processes, and the broker is asked for its streams. Seldom, since processes return memory then. */
const LOOKS = [0.1, 0.3, 0.5, 0.75, 0.98];
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
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-bench-memory-'));
  const target = await open('billed', { upstream, settings, core, options: { memoryFolder: folder, watchBroker: true } });
  try {
    const times = { warmMs: 0, measureMs: minutes * MINUTE_MS };
    const setting = { target, upstream, settings };
    const watched = watchMachine(target.facts.roots);
    const over = delay(times.measureMs);
    /** @type {Sample[]} */
    const samples = [];
    const sampling = sampleUntil(over, () => {
      samples.push({ atMs: performance.now(), bytes: new Map(readUsage(target.facts.roots).map(({ name, memoryBytes }) => [name, memoryBytes])) });
    });
    const looking = Promise.all(LOOKS.map((part) => delay(part * times.measureMs).then(() => look(target))));
    const [requests, streams] = await Promise.all([
      whole(setting, { inFlight: WHOLE_IN_FLIGHT, times }),
      streamed(setting, { ...settings.tokens, ...times, streams: STREAMS }),
    ]);
    await sampling;
    const broker = await looking;
    const { foreignCores } = watched();
    say(`soak: ${requests.count} requests, ${streams.figures.streams} streams in ${minutes} min`);
    const failed = [...requests.failures.messages, ...streams.failures.messages];
    const did = `${requests.count} whole requests and ${streams.figures.streams} streams in ${minutes} min, ${requests.failures.count + streams.failures.count} failed${failed.length === 0 ? '' : `: ${failed.join(' / ')}`}. Other programs used ${foreignCores.toFixed(2)} cores. ${stallsOf(samples, SAMPLE_EVERY_MS)}`;
    const minutesOf = LOOKS.map((part) => part * minutes);
    return [did, growthTable(samples), inUseTable(readInUse(folder), minutesOf), brokerTable(broker, minutesOf)].join('\n\n');
  } finally {
    await target.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** @param {import('./targets/start-target.mjs').Target} target */
async function look(target) {
  await target.call('signal');
  return readBroker(target.facts.brokerUrl ?? '');
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
