import { afterAll, afterEach, beforeAll } from 'vitest';
import { type Drivers, embeddedStores } from './embedded-stores.ts';
import { type House, openHouse } from './test-cluster.ts';

/** For a whole file: opens houses on the embedded drivers, each on an empty store, and closes them behind each test. */
export function useEmbeddedHouses(drivers: Drivers): () => Promise<House> {
  const stores = embeddedStores(drivers);
  const houses: House[] = [];
  // Opening the database takes longer than any test should.
  beforeAll(async () => {
    await stores.open();
  }, 60_000);
  afterEach(async () => {
    await Promise.all(houses.splice(0).map((house) => house.close()));
  });
  afterAll(() => stores.close());
  return async () => {
    const house = await openHouse(await stores.open());
    houses.push(house);
    return house;
  };
}
