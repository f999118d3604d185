import { describe, expect, it } from 'vitest';
import { tier } from '../helpers/tier.ts';
import { loadSimulation } from './load-simulation.ts';
import { plantedFaults } from './planted-faults.ts';
import { seedsToTry, WITHIN } from './seeds-to-try.ts';

/** The deep tier searches from the first seed on. */
const LONGEST_MS = tier === 'deep' ? 3_600_000 : 600_000;

let loaded: ReturnType<typeof loadSimulation> | null = null;

describe('a planted fault', () => {
  it.each(plantedFaults)(
    'is caught: $name',
    async ({ name, caughtAt, options = {}, patch }) => {
      loaded ??= loadSimulation();
      const runWithoutFault = await loaded;
      const runWithFault = patch === undefined ? runWithoutFault : await loadSimulation(patch);
      for (const seed of seedsToTry(caughtAt)) {
        const { violations } = await runWithFault({ seed, ...options });
        if (violations.length === 0) continue;
        console.log(`${name}: seed ${seed} (last at ${caughtAt}): ${violations[0]}`);
        expect((await runWithoutFault({ seed })).violations, `seed ${seed} without the fault`).toEqual([]);
        return;
      }
      expect.fail(`${name} was not caught within ${WITHIN} schedules`);
    },
    LONGEST_MS,
  );
});
