import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { PARTITION_COUNT } from '#bus/partition.ts';
import { systemClock } from '#shared/clock.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { embeddedStores } from './test-support/embedded-stores.ts';
import { Scenario } from './test-support/scenario.ts';
import { checkRules } from './test-support/scenario-rules.ts';
import { steps } from './test-support/scenario-steps.ts';
import { openTestCluster } from './test-support/test-cluster.ts';

/** CRASH_TEST_SECONDS sets it for long runs. A failure names its seed; CRASH_TEST_SEED starts with it. */
const SECONDS = Number(process.env['CRASH_TEST_SECONDS'] ?? 20);
const FIRST_SEED = Number(process.env['CRASH_TEST_SEED'] ?? Date.now() % 1_000_000_000);

const stores = embeddedStores({
  openDatabase: () => openTestDatabase(),
  openBus: (database) => openMemoryBus({ database, clock: systemClock, log: silentLog }),
});
/** Several times the longest scenario. A hang fails with its seed, not with the whole file. */
const SCENARIO_WITHIN_MS = 45_000;
const stoppingHosts: Promise<void>[] = [];

beforeAll(async () => {
  await stores.open();
});
afterAll(async () => {
  await Promise.all(stoppingHosts);
  await stores.close();
});

describe('sessions and runs, whatever happens to their hosts', () => {
  it(
    'have complete logs, end every turn, and settle every run once',
    async () => {
      const counts = { scenarios: 0, commits: 0, acquisitions: 0, messages: 0, runs: 0 };
      const scenario = fc.asyncProperty(steps, async (sequence) => {
        const cluster = await openTestCluster(await stores.open());
        const one = new Scenario(cluster, stoppingHosts);
        try {
          await one.begin();
          for (const step of sequence) await one.do(step);
          await one.end();
          await checkRules(cluster, one.trace);
        } finally {
          await one.close();
        }
        counts.scenarios += 1;
        counts.commits += cluster.fence.commits;
        counts.acquisitions += cluster.fence.acquisitions;
        counts.messages += cluster.notices.length;
        counts.runs += one.trace.runs.length;
      });
      const untilMs = performance.now() + SECONDS * 1_000;
      // One seed per scenario, so that none begins after the time limit. A shorter sequence has other timing, so
      // a failing scenario is not shrunk: its seed repeats it.
      for (let seed = FIRST_SEED; performance.now() < untilMs; seed += 1) {
        await fc.assert(scenario, { seed, numRuns: 1, endOnFailure: true, timeout: SCENARIO_WITHIN_MS });
      }
      console.log(`from seed ${FIRST_SEED}: ${JSON.stringify(counts)}`);
      expect(counts.scenarios, 'scenarios').toBeGreaterThan(0);
      expect(counts.acquisitions, 'partitions that changed hands').toBeGreaterThan(counts.scenarios * PARTITION_COUNT);
    },
    SECONDS * 1_000 + 60_000,
  );
});
