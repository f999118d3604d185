import { afterAll, beforeAll, describe } from 'vitest';
import { shapes } from '../helpers/deployment-under-test.ts';
import { type ActingHouse, actingHouse, openActingProviders } from '../helpers/scripted-deployment.ts';
import { faultCases } from './streams/fault-cases.ts';

describe.each(shapes)('streams that never lie, with Switchyard $name', ({ name, start }) => {
  let house: ActingHouse;

  beforeAll(async () => {
    const providers = await openActingProviders();
    house = actingHouse(name, providers, await start(providers.settings));
  });

  afterAll(async () => {
    await house.deployment.stop();
    await house.close();
  });

  faultCases(() => house);
});
