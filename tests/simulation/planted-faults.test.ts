import { describe, expect, it } from 'vitest';
import { loadSimulation } from './load-simulation.ts';
import { plantedFaults } from './planted-faults.ts';

/** Each fault has to be detected within this many schedules, all of which pass without it. */
const WITHIN = 2_000;

let loaded: ReturnType<typeof loadSimulation> | null = null;

describe('a planted fault', () => {
  it.each(plantedFaults)(
    'is caught: $name',
    async ({ name, options = {}, patch }) => {
      loaded ??= loadSimulation();
      const runWithoutFault = await loaded;
      const runWithFault = await loadSimulation(patch ?? null);
      for (let seed = 1; seed <= WITHIN; seed += 1) {
        const { violations } = await runWithFault({ seed, ...options });
        if (violations.length === 0) continue;
        console.log(`${name}: seed ${seed}: ${violations[0]}`);
        expect((await runWithoutFault({ seed })).violations, `seed ${seed} without the fault`).toEqual([]);
        return;
      }
      expect.fail(`${name} was not caught within ${WITHIN} schedules`);
    },
    600_000,
  );
});
