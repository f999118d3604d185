import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import type { Vite } from 'vitest/node';
import { tier } from './tests/helpers/tier.ts';
import { LongestFirst } from './tests/longest-first.ts';
import { moduleCache, moduleCacheKey } from './tests/module-cache.ts';
import { alone, deepOnly, needOwnProcess, needServers, slow, timed } from './tests/test-projects.ts';

const neverTests = ['**/node_modules/**', 'dist{,.next,.former}/**', ...(tier === 'deep' ? [] : deepOnly), ...(tier === 'fast' ? slow : [])];
/** A process for each file takes more CPU than most files do. */
const sharedProcesses = { isolate: false };
/** Units begin when files that assert times do, which leave them most of the CPU (docs/adr/0121). The fast tier has only units. */
const besideTimed = tier === 'fast' ? 0 : 1;
/** None of them takes long by itself; on a machine that is busy all of them may. */
const limitsOfUnits = { testTimeout: 240_000, hookTimeout: 240_000 };
/** An act takes half a minute; each await inside has a bound of its own, and the machine may be busy. */
const wholeDeployments = {
  globalSetup: ['./tests/database-template.ts', './tests/postgres-template.ts', './tests/chaos/setup.ts'],
  testTimeout: 240_000,
  hookTimeout: 240_000,
};

/** vitest 4.1 reads the modules of a global set-up from the cache without their source maps, and an error of one is not shown then. */
const cacheKeys: Vite.Plugin = {
  name: 'cache-keys',
  configureVitest: ({ experimental_defineCacheKeyGenerator: defineCacheKey }) => {
    const key = moduleCacheKey(import.meta.dirname);
    defineCacheKey(({ environment }) => (environment.name === 'ssr' ? key : false));
  },
};

export default defineConfig({
  plugins: [cacheKeys],
  // Without this row NODE_ENV=production would test an old dist/ instead of the sources. The workers get these as node's own conditions:
  // with 'import' among them a require() inside a package, as pg has, is given an ES module and fails.
  ssr: { resolve: { conditions: ['development', 'node'] } },
  test: {
    sequence: { sequencer: LongestFirst },
    // All projects of a run, and the next run, share what one has transformed (docs/adr/0146).
    experimental: { fsModuleCache: true, fsModuleCachePath: moduleCache(import.meta.dirname) },
    // They wait for timers and for processes that they have started, a third of the time and more.
    maxWorkers: 2 * availableParallelism(),
    // V8 never optimises PGlite's WebAssembly then: that costs more CPU than a test file wins back.
    execArgv: ['--wasm-tiering-budget=90000000'],
    reporters: ['default', './scripts/closing-line.mjs'],
    // vitest's own bound is one second, which a busy machine may take for a turn of the event loop.
    expect: { poll: { timeout: 60_000 } },
    projects: [
      {
        extends: true,
        test: {
          name: 'units',
          include: ['**/*.test.ts'],
          exclude: [...neverTests, ...needServers, ...needOwnProcess],
          globalSetup: './tests/database-template.ts',
          ...sharedProcesses,
          ...limitsOfUnits,
          sequence: { groupOrder: besideTimed },
        },
      },
      {
        extends: true,
        test: {
          name: 'own-process',
          include: needOwnProcess,
          exclude: neverTests,
          globalSetup: './tests/database-template.ts',
          ...limitsOfUnits,
        },
      },
      {
        extends: true,
        test: {
          name: 'servers',
          include: needServers,
          exclude: [...neverTests, ...timed, ...alone],
          globalSetup: ['./tests/database-template.ts', './tests/postgres-template.ts', './tests/global-setup.ts'],
          // They start processes, and the machine may be busy. Each await inside has a bound of its own.
          testTimeout: 240_000,
          hookTimeout: 240_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'timed',
          include: timed,
          exclude: neverTests,
          ...wholeDeployments,
          sequence: { groupOrder: besideTimed },
        },
      },
      {
        extends: true,
        test: {
          name: 'alone',
          include: alone,
          exclude: neverTests,
          ...wholeDeployments,
          sequence: { groupOrder: 2 },
          maxWorkers: 1,
        },
      },
    ],
  },
});
