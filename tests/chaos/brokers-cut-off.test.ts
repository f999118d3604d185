import { afterAll, beforeAll, expect, it } from 'vitest';
import { printFigures } from '../../scripts/chaos-figures.mjs';
import { type BrokerNetwork, openBrokerNetwork } from './broker-network.ts';
import { type Environment, openEnvironment } from './environment.ts';
import { underLoad } from './scenario.ts';
import { answeredAfterMs, brokerCutOff, printMeasured } from './scenarios/brokers.ts';
import { seededRandom } from './seeded-random.ts';

const TIMEOUT_MS = 900_000;

let network: BrokerNetwork;
let environment: Environment;
beforeAll(async () => {
  network = await openBrokerNetwork();
  environment = await openEnvironment(seededRandom(Number(process.env['CHAOS_SEED'] ?? 1)), { brokers: 3, relay: network.relay });
}, TIMEOUT_MS);
afterAll(async () => {
  // Absent where it could not be opened.
  if (environment) console.info(printFigures(environment.figures));
  console.info(printMeasured());
  await environment?.close();
  await network?.close();
}, TIMEOUT_MS);

it(
  'DESIGN 3: nothing accepted is lost, and work goes on, when one of three brokers is cut off from the others and from the services, and comes back',
  async () => {
    await underLoad(environment, [brokerCutOff(network)]);

    expect(answeredAfterMs).toHaveLength(3);
  },
  TIMEOUT_MS,
);
