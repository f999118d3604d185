import { describe, expect, it } from 'vitest';
import { seedsToTry, WITHIN } from '../seeds-to-try.ts';
import { loadRouterSimulation } from './load-router-simulation.ts';
import { plantedRouterFaults } from './planted-router-faults.ts';

let loaded: ReturnType<typeof loadRouterSimulation> | null = null;

describe('a planted fault of the router', () => {
  it.each(plantedRouterFaults)(
    'is caught: $name',
    async ({ name, caughtAt, rule, options = {}, patch }) => {
      loaded ??= loadRouterSimulation();
      const runWithoutFault = await loaded;
      const runWithFault = patch === undefined ? runWithoutFault : await loadRouterSimulation(patch);
      for (const seed of seedsToTry(caughtAt)) {
        const { violations } = await runWithFault({ seed, ...options });
        const found = violations.find((violation) => violation.startsWith(`${rule}:`));
        if (found === undefined) continue;
        console.log(`${name}: seed ${seed} (last at ${caughtAt}): ${found}`);
        expect((await runWithoutFault({ seed })).violations, `seed ${seed} without the fault`).toEqual([]);
        return;
      }
      expect.fail(`${name} was not caught within ${WITHIN} schedules`);
    },
    600_000,
  );
});
