import { describe, expect, it } from 'vitest';
import { loadRouterSimulation } from './load-router-simulation.ts';
import { plantedRouterFaults } from './planted-router-faults.ts';

/** Each fault has to be detected within this many schedules, all of which pass without it. */
const WITHIN = 2_000;

describe('a planted fault of the router', () => {
  it.each(plantedRouterFaults)(
    'is caught: $name',
    async ({ name, rule, options = {}, patch }) => {
      const runWithFault = await loadRouterSimulation(patch ?? null);
      for (let seed = 1; seed <= WITHIN; seed += 1) {
        const { violations } = await runWithFault({ seed, ...options });
        const found = violations.find((violation) => violation.startsWith(`${rule}:`));
        if (found === undefined) continue;
        console.log(`${name}: seed ${seed}: ${found}`);
        const runWithoutFault = await loadRouterSimulation();
        expect((await runWithoutFault({ seed })).violations, `seed ${seed} without the fault`).toEqual([]);
        return;
      }
      expect.fail(`${name} was not caught within ${WITHIN} schedules`);
    },
    600_000,
  );
});
