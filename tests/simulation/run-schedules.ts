import { expect } from 'vitest';
import { day, type Tier, tier } from '../helpers/tier.ts';
import { loadSimulation } from './load-simulation.ts';
import type { Outcome } from './run-simulation.ts';

const SCHEDULES_OF: Record<Tier, number> = { fast: 500, normal: 4_000, deep: 20_000 };
/** Both halves. SIMULATION_SCHEDULES asks for another number, SIMULATION_SEED for another first seed, or for one seed again. */
const SCHEDULES = Number(process.env['SIMULATION_SCHEDULES'] ?? SCHEDULES_OF[tier]);
/** The fast tier has other seeds each day, beyond those of the other tiers, so that its few schedules add up. */
const FIRST_SEED = Number(process.env['SIMULATION_SEED'] ?? (tier === 'fast' ? SCHEDULES_OF.deep + day * SCHEDULES_OF.fast : 1));
/** Per schedule. */
const FEWEST_STEPS = 50;
/** Schedules that are run twice, to check that they are deterministic. */
const REPLAYED = 10;
/** Printed lines of a failing schedule: around the violation, and at its end. */
const SHOWN_FIRST_LINES = 900;
const SHOWN_LAST_LINES = 100;
const HALVES = 2;

/** Runs a half of the schedules and checks the rules in each. @param half 0 or 1 */
export async function runSchedules(half: number): Promise<void> {
  const runSimulation = await loadSimulation();
  const traces = new Set<string>();
  const sums: Record<string, number> = {};
  let [executed, steps, fewest] = [0, 0, Number.POSITIVE_INFINITY];
  const begunAtMs = performance.now();
  const cpu = process.cpuUsage();
  for (let seed = FIRST_SEED + half; seed < FIRST_SEED + SCHEDULES; seed += HALVES) {
    const outcome = await runSimulation({ seed });
    hold(outcome);
    executed += 1;
    steps += outcome.steps;
    fewest = Math.min(fewest, outcome.steps);
    traces.add(outcome.traceHash);
    for (const [what, count] of Object.entries(outcome.counts)) sums[what] = (sums[what] ?? 0) + count;
    if (executed <= REPLAYED) expect((await runSimulation({ seed })).traceHash, `seed ${seed} has the same steps again`).toBe(outcome.traceHash);
  }
  if (executed === 0) return;
  const { user, system } = process.cpuUsage(cpu);
  const took = `${Math.round((performance.now() - begunAtMs) / 1_000)} s, ${((user + system) / 1_000 / executed).toFixed(1)} ms of a core each`;
  console.log(`simulation: ${executed} schedules from seed ${FIRST_SEED + half}, ${steps} steps, ${traces.size} distinct interleavings, in ${took}`);
  console.log(`simulation: ${JSON.stringify(sums)}`);
  expect(fewest, 'steps of the shortest').toBeGreaterThanOrEqual(FEWEST_STEPS);
  // Not asserted when one seed is asked for; among many schedules all kinds of faults must occur.
  if (executed < 1_000) return;
  expect(traces.size, 'distinct interleavings').toBeGreaterThan(0.99 * executed);
  for (const what of ['fenced', 'redeliveries', 'noticesLost', 'kills', 'pauses', 'cutOffs']) expect(sums[what], what).toBeGreaterThan(0);
}

function hold({ seed, violations, trace }: Outcome): void {
  if (violations.length === 0) return;
  const last = trace.slice(SHOWN_FIRST_LINES).slice(-SHOWN_LAST_LINES);
  const left = trace.length - SHOWN_FIRST_LINES - last.length;
  console.error([`seed ${seed}:`, ...trace.slice(0, SHOWN_FIRST_LINES), ...(left > 0 ? [`… ${left} lines …`] : []), ...last].join('\n'));
  expect.fail(`SIMULATION_SEED=${seed} SIMULATION_SCHEDULES=1 replays it:\n${violations.slice(0, 10).join('\n')}`);
}
