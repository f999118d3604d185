import { afterAll, afterEach, beforeAll } from 'vitest';
import { type Drivers, embeddedStores } from './embedded-stores.ts';
import { openTestCluster, type TestCluster } from './test-cluster.ts';

/** For a whole file: opens clusters on the embedded drivers, each with an empty store, and closes them after each test. */
export function useEmbeddedClusters(drivers: Drivers): () => Promise<TestCluster> {
  const stores = embeddedStores(drivers);
  const clusters: TestCluster[] = [];
  // Opening the database takes longer than any test should.
  beforeAll(async () => {
    await stores.open();
  });
  afterEach(async () => {
    await Promise.all(clusters.splice(0).map((cluster) => cluster.close()));
  });
  afterAll(() => stores.close());
  return async () => {
    const cluster = await openTestCluster(await stores.open());
    clusters.push(cluster);
    return cluster;
  };
}
