import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { printFigures } from '../../scripts/chaos-figures.mjs';
import { type Environment, openEnvironment } from './environment.ts';
import { underLoad } from './scenario.ts';
import { answeredAfterMs, brokerEmptied, brokerPaused, brokersKilledInTurn, printMeasured } from './scenarios/brokers.ts';
import { seededRandom } from './seeded-random.ts';

const TIMEOUT_MS = 900_000;
/** Each broker twice. */
const ROUNDS = 6;

/** One for each loss: what a server of nats-server before 2.10.14 counts otherwise since it was killed shows in later losses (docs/adr/0124). */
let environment: Environment;
beforeEach(async () => {
  environment = await openEnvironment(seededRandom(Number(process.env['CHAOS_SEED'] ?? 1)), { brokers: 3 });
}, TIMEOUT_MS);
afterEach(async () => {
  console.info(printFigures(environment.figures));
  console.info(printMeasured());
  await environment.close();
}, TIMEOUT_MS);

describe('three brokers under load', () => {
  it.each([brokersKilledInTurn(ROUNDS), brokerPaused, brokerEmptied])(
    'DESIGN 3: nothing accepted is lost, and work goes on: $name',
    async (fault) => {
      const before = answeredAfterMs.length;
      await underLoad(environment, [fault]);

      expect(answeredAfterMs.length).toBeGreaterThan(before);
    },
    TIMEOUT_MS,
  );
});
