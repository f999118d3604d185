import { expect } from 'vitest';
import { day, type Tier, tier } from '../helpers/tier.ts';
import { loadSimulation } from './load-simulation.ts';

const SCHEDULES_OF: Record<Tier, number> = { fast: 100, normal: 200, deep: 20_000 };
/** Per schedule. */
const FEWEST_STEPS = 50;
/** Schedules that are run twice, to check that they are deterministic. */
const REPLAYED = 10;
/** Printed lines of a failing schedule: around the violation, and at its end. */
const SHOWN_FIRST_LINES = 900;
const SHOWN_LAST_LINES = 100;
/** The many schedules of the deep tier are divided between two files, which run at the same time. */
const HALVES = tier === 'deep' ? 2 : 1;

/** What one schedule came to. */
interface Scheduled {
  seed: number;
  violations: readonly string[];
  steps: number;
  trace: readonly string[];
  traceHash: string;
  counts: Record<string, number>;
}

interface ScheduleRun {
  /** In what is printed. */
  name: string;
  /** Of all files. SIMULATION_SCHEDULES asks for another number, SIMULATION_SEED for another first seed, or for one seed again. */
  schedulesOf: Record<Tier, number>;
  /** 0; in the deep tier also 1. */
  half: number;
}

/** Runs the schedules, or a half of them in the deep tier, and checks the rules in each. @param half 0; in the deep tier also 1 */
export async function runSchedules(half: number): Promise<void> {
  const run = await loadSimulation();
  const { executed, fewest, sums } = await scheduleRun(run, { name: 'simulation', schedulesOf: SCHEDULES_OF, half });
  if (executed === 0) return;
  expect(fewest, 'steps of the shortest').toBeGreaterThanOrEqual(FEWEST_STEPS);
  // Not asserted when one seed is asked for; among many schedules all kinds of faults must occur, and work must be done.
  if (executed < 200) return;
  // Schedules in which policies, tools or a routine decide a turn: 5,000 and more of the deep tier.
  expect(sums['withEngine'], 'withEngine').toBeGreaterThan(executed / 4);
  expect(sums['runsWithTools'], 'of the runs whose model was asked, those that made a call of a tool').toBeGreaterThan(0.4 * (sums['runsAsked'] ?? 0));
  for (const what of [
    'replies',
    'succeeded',
    'fenced',
    'redeliveries',
    'noticesLost',
    'kills',
    'pauses',
    'cutOffs',
    'leadersLost',
    'hostless',
    'timersHeld',
    'slowed',
    'inProcess',
    'eventsDeleted',
    'eventsPatched',
    'messagesPassed',
    'messagesWithheld',
    'takenOver',
    'turnsWithDocuments',
    'turnsWithVectors',
    'callsOfCancelled',
    'callsWithdrawn',
    'noResponders',
    'dropped',
    'storedAgain',
  ])
    expect(sums[what], what).toBeGreaterThan(0);
}

/** Runs the schedules of a simulation, or a half of them in the deep tier. @returns how many, the steps of the shortest, and the sums of what they count */
export async function scheduleRun(
  run: (options: { seed: number }) => Promise<Scheduled>,
  { name, schedulesOf, half }: ScheduleRun,
): Promise<{ executed: number; fewest: number; sums: Record<string, number> }> {
  const schedules = Number(process.env['SIMULATION_SCHEDULES'] ?? schedulesOf[tier]);
  // The fast tier has other seeds each day, beyond those of the other tiers, so that its few schedules add up.
  const firstSeed = Number(process.env['SIMULATION_SEED'] ?? (tier === 'fast' ? schedulesOf.deep + day * schedulesOf.fast : 1));
  const traces = new Set<string>();
  const sums: Record<string, number> = {};
  let [executed, steps, fewest] = [0, 0, Number.POSITIVE_INFINITY];
  const begunAtMs = performance.now();
  const cpu = process.cpuUsage();
  for (let seed = firstSeed + half; seed < firstSeed + schedules; seed += HALVES) {
    const outcome = await run({ seed });
    hold(outcome);
    executed += 1;
    steps += outcome.steps;
    fewest = Math.min(fewest, outcome.steps);
    traces.add(outcome.traceHash);
    for (const [what, count] of Object.entries(outcome.counts)) sums[what] = (sums[what] ?? 0) + count;
    if (executed <= REPLAYED) expect((await run({ seed })).traceHash, `seed ${seed} has the same steps again`).toBe(outcome.traceHash);
  }
  if (executed === 0) return { executed, fewest, sums };
  const { user, system } = process.cpuUsage(cpu);
  const took = `${Math.round((performance.now() - begunAtMs) / 1_000)} s, ${((user + system) / 1_000 / executed).toFixed(1)} ms of a core each`;
  console.log(`${name}: ${executed} schedules from seed ${firstSeed + half}, ${steps} steps, ${traces.size} distinct interleavings, in ${took}`);
  console.log(`${name}: ${JSON.stringify(sums)}`);
  if (executed >= 1_000) expect(traces.size, 'distinct interleavings').toBeGreaterThan(0.99 * executed);
  return { executed, fewest, sums };
}

function hold({ seed, violations, trace }: Scheduled): void {
  if (violations.length === 0) return;
  const last = trace.slice(SHOWN_FIRST_LINES).slice(-SHOWN_LAST_LINES);
  const left = trace.length - SHOWN_FIRST_LINES - last.length;
  console.error([`seed ${seed}:`, ...trace.slice(0, SHOWN_FIRST_LINES), ...(left > 0 ? [`… ${left} lines …`] : []), ...last].join('\n'));
  expect.fail(`SIMULATION_SEED=${seed} SIMULATION_SCHEDULES=1 replays it:\n${violations.slice(0, 10).join('\n')}`);
}
