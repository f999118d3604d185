import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, inject, it } from 'vitest';
import { freshDatabase } from '../../shared/storage/conformance/fresh-database.ts';
import { openPostgres } from '../../shared/storage/postgres/open-postgres.ts';
import { silentLog } from '../../shared/telemetry/log.ts';
import { eventually } from '../helpers/eventually.ts';
import { root, runProgram } from '../helpers/run-program.ts';

/** Connects, prints that it has, and migrates at the first input. */
const PROGRAM = `
import { migrate } from './dist/shared/storage/migrate.js';
import { openPostgres } from './dist/shared/storage/postgres/open-postgres.js';
import { silentLog } from './dist/shared/telemetry/log.js';
const database = await openPostgres({ url: process.argv[1], applicationName: 'migrator ' + process.pid, log: silentLog });
console.log('ready');
await new Promise((resolve) => process.stdin.once('data', resolve));
console.log('applied ' + JSON.stringify(await migrate(database)));
await database.close();
process.exit();`;

const PROCESSES = 10;

/** Ten starts of Node on a busy machine. */
const START_TIMEOUT_MS = 60_000;

it('DESIGN 10: an empty database is migrated once, however many processes start at once', async () => {
  const fresh = await freshDatabase(inject('postgresUrl'));
  const programs = Array.from({ length: PROCESSES }, () => runProgram([process.execPath, '--input-type=module', '-e', PROGRAM, fresh.url]));
  await eventually(() => programs.every((program) => program.output().includes('ready')), { timeoutMs: START_TIMEOUT_MS });

  for (const program of programs) program.type('go\n');
  const exits = await Promise.all(programs.map(({ exited }) => exited));

  const outputs = programs.map((program) => program.output());
  expect(exits, outputs.join('\n')).toEqual(programs.map(() => ({ code: 0, signal: null })));
  const files = (await readdir(join(root, 'shared/storage/migrations'))).filter((name) => name.endsWith('.sql')).sort();
  const applied = outputs.flatMap((output): string[] => JSON.parse(/^applied (.*)$/m.exec(output)?.[1] ?? 'null'));
  expect(applied.sort()).toEqual(files);

  const database = await openPostgres({ url: fresh.url, applicationName: 'test', log: silentLog });
  expect((await database.query('select name from schema_migrations order by number')).rows).toEqual(files.map((name) => ({ name })));
  await database.close();
  await fresh.drop();
});
