import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

/** Tests that talk to real servers or run the built program; all others need neither and start at once. */
const needServers = [
  'tests/e2e/**/*.test.ts',
  'tests/chaos/**/*.test.ts',
  'bus/nats/**/*.test.ts',
  'shared/storage/{postgres,redis}/**/*.test.ts',
  'services/**/*.servers.test.ts',
];
/** Promises in seconds, under load: nothing else may run beside them, nor they beside each other. */
const chaos = ['tests/chaos/{chaos,edge-drain,edge-drain-standalone,edge-overload,edge-stores}.test.ts', 'tests/e2e/leaving.test.ts'];
const neverTests = ['**/node_modules/**', 'dist/**'];

export default defineConfig({
  // Without this row NODE_ENV=production would test an old dist/ instead of the sources. The workers get these as node's own conditions:
  // with 'import' among them a require() inside a package, as pg has, is given an ES module and fails.
  ssr: { resolve: { conditions: ['development', 'node'] } },
  test: {
    // Half of them wait for processes that they have started, so even two cores do more than one at a time.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    reporters: ['default', './scripts/closing-line.mjs'],
    // vitest's own bound is one second, which a busy machine may take for a turn of the event loop.
    expect: { poll: { timeout: 30_000 } },
    projects: [
      {
        extends: true,
        test: {
          name: 'units',
          include: ['**/*.test.ts'],
          exclude: [...neverTests, ...needServers],
          globalSetup: './tests/database-template.ts',
          // None of them takes long by itself; on a machine that is busy all of them may.
          testTimeout: 60_000,
          hookTimeout: 120_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'servers',
          include: needServers,
          exclude: [...neverTests, ...chaos],
          globalSetup: ['./tests/database-template.ts', './tests/global-setup.ts'],
          // They start processes, and the machine may be busy. Each await inside has a bound of its own.
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'chaos',
          include: chaos,
          exclude: neverTests,
          globalSetup: ['./tests/database-template.ts', './tests/chaos/setup.ts'],
          // An act takes half a minute; each await inside has a bound of its own, and the machine may be busy.
          testTimeout: 240_000,
          hookTimeout: 240_000,
          // Behind all others, which have no order among themselves.
          sequence: { groupOrder: 1 },
          maxWorkers: 1,
        },
      },
    ],
  },
});
