import { afterAll, afterEach, beforeAll } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { openPglite } from '#shared/storage/pglite/open-pglite.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { commandCases } from './test-support/command-cases.ts';
import { embeddedStores } from './test-support/embedded-stores.ts';
import { hostCases } from './test-support/host-cases.ts';
import { type House, openHouse } from './test-support/house.ts';
import { patchCases } from './test-support/patch-cases.ts';
import { runCases } from './test-support/run-cases.ts';

const stores = embeddedStores({
  openDatabase: () => openPglite({ folder: null }),
  openBus: (database) => openMemoryBus({ database, clock: systemClock, log: silentLog }),
});
const houses: House[] = [];
const open = async () => {
  const house = await openHouse(await stores.open());
  houses.push(house);
  return house;
};

// Opening the database takes longer than any test should.
beforeAll(async () => {
  await stores.open();
}, 60_000);
afterEach(async () => {
  await Promise.all(houses.splice(0).map((house) => house.close()));
});
afterAll(() => stores.close());

commandCases(open);
hostCases(open);
patchCases(open);
runCases(open);
