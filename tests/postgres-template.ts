import { execFile } from 'node:child_process';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { TestProject } from 'vitest/node';
import { testProgram } from '../scripts/servers/test-programs.mjs';
import { startTestPostgres } from '../scripts/servers/test-services.mjs';
import { migrate } from '../shared/storage/migrate.ts';
import { openPostgres } from '../shared/storage/postgres/open-postgres.ts';
import { silentLog } from '../shared/telemetry/log.ts';
import { CACHE, digestOf, exists, filesOf } from './helpers/template-files.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Data folder of a stopped PostgreSQL whose database `postgres` is migrated and empty. */
    postgresTemplate: string;
  }
}

/** With the server's version and the user, the inputs of the template. */
const MADE_FROM = ['shared/storage/migrations', 'shared/storage/migrate.ts', 'scripts/servers/stores.mjs'];
const SUFFIX = '-postgres';
const run = promisify(execFile);

/** Once per run, before the first test that starts a cluster: initialises and migrates a database, or uses that of an earlier run. */
export default async function setup(project: TestProject): Promise<void> {
  // A test of the built program alone needs no servers.
  if (process.env.SWITCHYARD_TEST_SERVICES === '0') return;
  const { stdout: version } = await run(join(await testProgram('postgresBin'), 'postgres'), ['--version']);
  const template = join(CACHE, `${await digestOf(MADE_FROM, `${version}${process.getuid?.()}`)}${SUFFIX}`);
  if (!(await exists(template))) await makeTemplate(template);
  project.provide('postgresTemplate', template);
}

async function makeTemplate(template: string): Promise<void> {
  await mkdir(CACHE, { recursive: true });
  const server = await startTestPostgres();
  const database = await openPostgres({ url: server.url, applicationName: 'template', log: silentLog });
  await migrate(database);
  await database.close();
  // Its files are complete once it has written a checkpoint and ended.
  await server.end('SIGINT');
  // Renamed into place when it is complete: two runs may make it at the same time.
  const unfinished = `${template}.${process.pid}`;
  await run('cp', ['-a', server.folder, unfinished]);
  await rename(unfinished, template).catch(() => rm(unfinished, { recursive: true, force: true }));
  await server.close();
  const outdated = (await filesOf(CACHE)).filter((path) => path.endsWith(SUFFIX) && path !== template);
  // Those of another user stay.
  await Promise.allSettled(outdated.map((path) => rm(path, { recursive: true, force: true })));
}
