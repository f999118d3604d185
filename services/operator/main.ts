import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { CommandTags } from '#bus/command-tags.ts';
import { openNatsBus } from '#bus/nats/nats-bus.ts';
import { upgradeStreams } from '#bus/nats/upgrade-streams.ts';
import { systemClock } from '#shared/clock.ts';
import { natsConfigOf } from '#shared/config/nats-settings.ts';
import { settingsOf } from '#shared/config/setting-table.ts';
import { readSettings } from '#shared/config/settings.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { Releasers } from '#shared/lifecycle/releasers.ts';
import { lockDataFolder } from '#shared/storage/data-folder.ts';
import { openPglite } from '#shared/storage/pglite/open-pglite.ts';
import { openPostgres } from '#shared/storage/postgres/open-postgres.ts';
import { createLog } from '#shared/telemetry/log.ts';
import { maskUrl } from '#shared/telemetry/redact.ts';
import { operatorProgram } from './service.ts';

const CLOSE_TIMEOUT_MS = 5_000;

const { NATS_URL, NATS_PASSWORD, DATABASE_URL, DATA_DIR, HOUSE_SECRET } = settingsOf('operator');

const log = createLog({ level: process.env['LOG_LEVEL'] || 'warn', format: process.env['LOG_FORMAT'] || null, service: 'operator' });
const releasers = new Releasers(log);

/** The operator's command line as a process: connects only to what the given command needs. */
const program = operatorProgram({
  async openDatabase() {
    const { DATA_DIR: folder } = readSettings({ DATA_DIR }, process.env);
    if (folder !== undefined && !process.env['DATABASE_URL']) return openEmbedded(resolve(folder));
    const { DATABASE_URL: url } = readSettings({ DATABASE_URL }, process.env);
    const database = await openPostgres({ url, applicationName: 'operator', maxConnections: 1, log });
    releasers.add('database', () => database.close());
    return database;
  },
  async openBus() {
    const bus = await openNatsBus({ ...natsConfigOf('operator', readSettings({ NATS_URL, NATS_PASSWORD }, process.env)), log });
    releasers.add('bus', () => bus.close());
    return bus;
  },
  tags: () => new CommandTags(readSettings({ HOUSE_SECRET }, process.env).HOUSE_SECRET),
  upgradeStreams: () => upgradeStreams(natsConfigOf('operator', readSettings({ NATS_URL, NATS_PASSWORD }, process.env))),
  environment: process.env,
  print: (line) => console.log(line),
  clock: systemClock,
  log,
});

/** That of `npm start`, which must not run meanwhile. */
async function openEmbedded(dataFolder: string) {
  const folder = join(dataFolder, 'database');
  if (!existsSync(folder)) throw new SwitchyardError('config.invalid', `DATA_DIR: there is no database in ${dataFolder}`);
  const lock = await lockDataFolder(dataFolder);
  releasers.add('data folder', () => lock.release());
  const database = await openPglite({ folder });
  releasers.add('database', () => database.close());
  return database;
}

let exitCode = 0;
try {
  await program.parseAsync();
} catch (error) {
  // A known error's message is for people; any other error is a bug and shows its stack.
  console.error(error instanceof SwitchyardError ? maskUrl(error.message) : error);
  exitCode = 1;
}
await releasers.releaseAll({ timeoutMs: CLOSE_TIMEOUT_MS });
process.exit(exitCode);
