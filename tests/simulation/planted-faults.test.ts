import { describe, expect, it } from 'vitest';
import { loadSimulation } from './load-simulation.ts';
import { plantedFaults } from './planted-faults.ts';

/** Each fault has to show within so many schedules, all of which the house as it is passes. */
const WITHIN = 2_000;

describe('a fault that is planted', () => {
  it.each(plantedFaults)(
    'is caught: $name',
    async ({ name, options = {}, patch }) => {
      const live = await loadSimulation(patch ?? null);
      for (let seed = 1; seed <= WITHIN; seed += 1) {
        const { violations } = await live({ seed, ...options });
        if (violations.length === 0) continue;
        console.log(`${name}: seed ${seed}: ${violations[0]}`);
        const fair = await loadSimulation();
        expect((await fair({ seed })).violations, `seed ${seed} of the house as it is`).toEqual([]);
        return;
      }
      expect.fail(`${name} was not caught within ${WITHIN} schedules`);
    },
    600_000,
  );
});
