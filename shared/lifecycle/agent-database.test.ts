import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { openTestDatabase } from '../storage/pglite/test-support/open-test-database.ts';
import { silentLog } from '../telemetry/log.ts';
import { agentDatabase } from './agent-database.ts';
import { boot } from './boot.ts';
import { Releasers } from './releasers.ts';

const manifestPath = fileURLToPath(new URL('../../examples/acme-support/manifest.yaml', import.meta.url));

it('opens the database of DATABASE_URL once, migrates it, and releases it with the process', async () => {
  const opened: string[] = [];
  const releasers = new Releasers(silentLog);
  const { first, again } = await boot(
    () => {},
    async (step) => {
      const config = { databaseUrl: 'postgres://agent:secret@db.example:5432/agent', manifestPath };
      const open = agentDatabase({ config, environment: {}, log: silentLog, step, releasers }, (url) => {
        opened.push(url);
        return openTestDatabase();
      });
      expect(opened).toEqual([]);
      const [first, again] = await Promise.all([open(), open()]);
      return { first, again };
    },
  );

  expect(opened).toEqual(['postgres://agent:secret@db.example:5432/agent']);
  expect(again).toBe(first);
  expect(first.postgres).toBe('PostgreSQL at db.example:5432');
  expect((await first.database.query('select 1 from events')).rows).toEqual([]);
  await releasers.releaseAll({ timeoutMs: 10_000 });
  await expect(first.database.query('select 1')).rejects.toThrow();
});
