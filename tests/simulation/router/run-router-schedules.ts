import { expect } from 'vitest';
import type { Tier } from '../../helpers/tier.ts';
import { scheduleRun } from '../run-schedules.ts';
import { loadRouterSimulation } from './load-router-simulation.ts';

const SCHEDULES_OF: Record<Tier, number> = { fast: 150, normal: 200, deep: 20_000 };
/** Per schedule. */
const FEWEST_STEPS = 60;
/** What happens in any 200 of them. */
const OCCURRING = [
  ...['kills', 'pauses', 'cutOffs', 'restarts', 'outages', 'storesLost', 'leadersLost', 'slowed', 'redeliveries', 'lapsed'],
  ...['noResponders', 'inProcess', 'dropped', 'storedAgain'],
  ...['noCredit', 'rateLimited', 'unavailable', 'actors', 'withFile', 'resumedToEnd'],
];

/** Runs the router's schedules, or a half of them in the deep tier, and checks the rules in each. @param half 0; in the deep tier also 1 */
export async function runRouterSchedules(half: number): Promise<void> {
  const run = await loadRouterSimulation();
  const { executed, fewest, sums } = await scheduleRun(run, { name: 'simulation of the router', schedulesOf: SCHEDULES_OF, half });
  if (executed === 0) return;
  expect(fewest, 'steps of the shortest').toBeGreaterThanOrEqual(FEWEST_STEPS);
  if (executed < 200) return;
  for (const what of OCCURRING) expect(sums[what], what).toBeGreaterThan(0);
}
