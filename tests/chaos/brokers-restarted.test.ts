import { expect, it } from 'vitest';
import { printFigures } from '../../scripts/chaos-figures.mjs';
import { openEnvironment } from './environment.ts';
import { checkInvariants } from './invariants.ts';
import { beginLoad } from './load.ts';
import { brokenStreams, refusalsBeyond503 } from './refused-streams.ts';
import { everythingRestarts, printMeasured } from './scenarios/brokers.ts';
import { seededRandom } from './seeded-random.ts';

const TIMEOUT_MS = 900_000;
const UNDER_WAY = 30;

it(
  'DESIGN 3: no request is refused but by a 503 with Retry-After while all services and brokers are restarted, one after the other',
  async () => {
    const environment = await openEnvironment(seededRandom(Number(process.env['CHAOS_SEED'] ?? 1)), { brokers: 3, avoidsEnded: true });
    try {
      const load = beginLoad(environment);
      try {
        await load.more(UNDER_WAY);
        await everythingRestarts.inject(environment, load);
        await load.more(UNDER_WAY);
      } catch (error) {
        load.abandon();
        throw error;
      }
      const accepted = await load.end();
      await checkInvariants(environment, accepted, { extraCalls: everythingRestarts.extraCalls });

      expect(accepted.streams.length).toBeGreaterThan(20);
      expect(refusalsBeyond503(environment, accepted.streams)).toEqual([]);
      expect(brokenStreams(environment, accepted.streams)).toEqual([]);
      expect(environment.refusals).toEqual([]);
    } finally {
      console.info(printFigures(environment.figures));
      console.info(printMeasured());
      await environment.close();
    }
  },
  TIMEOUT_MS,
);
