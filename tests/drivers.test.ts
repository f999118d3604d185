import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));

/** The folder of each driver, by the suite that its port has. */
const drivers = {
  busConformance: ['bus/memory', 'bus/nats'],
  databaseConformance: ['shared/storage/pglite', 'shared/storage/postgres'],
  cacheConformance: ['shared/storage/memory', 'shared/storage/redis'],
};

it('DESIGN 3: every driver of the bus, the database and the cache passes the one suite of its port', () => {
  for (const [suite, folders] of Object.entries(drivers)) {
    for (const folder of folders) {
      const tests = readdirSync(join(root, folder)).filter((name) => name.endsWith('.test.ts'));
      const calls = tests.filter((name) => new RegExp(`^${suite}\\(`, 'm').test(readFileSync(join(root, folder, name), 'utf8')));

      expect(calls, `${folder} runs ${suite}`).not.toEqual([]);
    }
  }
});
