import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { CommanderError } from 'commander';
import { systemClock } from '#shared/clock.ts';
import { withFix } from './failure-with-fix.ts';
import { exitCodes, failureJson, failureText, failureToPrint, SEE_HELP } from './failures.ts';
import { ProgressLine } from './progress-line.ts';
import { switchyardProgram } from './service.ts';
import { dataFolder } from './targets.ts';

const CLOSE_TIMEOUT_MS = 5_000;

/** What to do when a store can not be opened. */
const FIXES = {
  database: 'start PostgreSQL or correct DATABASE_URL, or set DATA_DIR to the folder of `switchyard start`; `switchyard doctor` looks at each',
  broker: 'start nats-server, or correct NATS_URL and NATS_PASSWORD, which is that of its user `operator`; `switchyard doctor` looks at each',
} as const;

type Release = () => Promise<void>;

/** Last in, first out. Loaded lazily like all else: `--help` needs nothing. */
const releases: { name: string; release: Release }[] = [];

const isJson = process.argv.includes('--json');

/** Of both streams, since results are printed to the other one. */
const isOnTerminal = process.stderr.isTTY === true && process.stdout.isTTY === true && !isJson;
const goingOn = new ProgressLine(isOnTerminal ? { columns: process.stderr.columns, write: (text) => process.stderr.write(text) } : null);

/** The command line as a process: loads and connects to only what the given command needs. */
const program = switchyardProgram({
  openDatabase,
  openBus: () => (usesDataFolder() ? openEmbeddedBus() : withFix(FIXES.broker, openBus)),
  async openTags() {
    const [{ CommandTags }, { HOUSE_SECRET }] = await Promise.all([import('#bus/command-tags.ts'), secretSettings()]);
    return new CommandTags(HOUSE_SECRET);
  },
  upgradeStreams: () => withFix(FIXES.broker, async () => (await import('#bus/nats/upgrade-streams.ts')).upgradeStreams(await brokerAccount())),
  async inspectStreams() {
    const { inspectStreams } = await import('#bus/nats/inspect-streams.ts');
    return inspectStreams(await brokerAccount());
  },
  async pingCache() {
    const [{ openRedis }, { REDIS_URL }, log] = await Promise.all([import('#shared/storage/redis/open-redis.ts'), settings('REDIS_URL'), openLog()]);
    if (REDIS_URL === undefined) return;
    const cache = await openRedis({ url: REDIS_URL, log });
    releases.push({ name: 'cache', release: () => cache.close() });
    await cache.get('doctor');
  },
  openLog,
  environment: process.env,
  print(line) {
    goingOn.clear();
    console.log(line);
  },
  write(text) {
    goingOn.clear();
    process.stdout.write(text);
  },
  writeError(text) {
    goingOn.clear();
    if (!isJson) process.stderr.write(text);
  },
  progress: (text) => goingOn.show(text),
  readLines,
  columns: process.stdout.isTTY ? process.stdout.columns : null,
  clock: systemClock,
});

async function openBus() {
  goingOn.show('connecting to NATS');
  const [{ openNatsBus }, account, log] = await Promise.all([import('#bus/nats/nats-bus.ts'), brokerAccount(), openLog()]);
  const bus = await openNatsBus({ ...account, log });
  releases.push({ name: 'bus', release: () => bus.close() });
  return bus;
}

let embedded: ReturnType<typeof openEmbedded> | null = null;

/** Whether the stores are those of `npm start`: without an address of another database, in the folder that is named, or in the default one if it exists. */
function usesDataFolder(): boolean {
  if (process.env['DATABASE_URL']) return false;
  return Boolean(process.env['DATA_DIR']) || existsSync(join(dataFolder(process.env), 'database'));
}

async function openDatabase() {
  if (!usesDataFolder()) return withFix(FIXES.database, openServer);
  embedded ??= openEmbedded(dataFolder(process.env));
  return embedded;
}

/** The broker of `npm start` is tables of its database. */
async function openEmbeddedBus() {
  const [{ openMemoryBus }, database, log] = await Promise.all([import('#bus/memory/memory-bus.ts'), openDatabase(), openLog()]);
  const bus = await openMemoryBus({ database, clock: systemClock, log });
  releases.push({ name: 'bus', release: () => bus.close() });
  return bus;
}

/** That of the environment, else the one that `npm start` has generated. */
async function secretSettings() {
  if (process.env['HOUSE_SECRET'] || !usesDataFolder()) return settings('HOUSE_SECRET');
  const { readFile } = await import('node:fs/promises');
  const { house_secret: HOUSE_SECRET } = Object(JSON.parse(await readFile(join(dataFolder(process.env), 'keys.json'), 'utf8')));
  const [{ settingsOf }, { readSettings }] = await Promise.all([import('#shared/config/setting-table.ts'), import('#shared/config/settings.ts')]);
  return readSettings({ HOUSE_SECRET: settingsOf('operator').HOUSE_SECRET }, { HOUSE_SECRET });
}

async function openServer() {
  goingOn.show('connecting to PostgreSQL');
  const [{ openPostgres }, { DATABASE_URL: url }, log] = await Promise.all([
    import('#shared/storage/postgres/open-postgres.ts'),
    settings('DATABASE_URL'),
    openLog(),
  ]);
  const database = await openPostgres({ url, applicationName: 'operator', maxConnections: 1, log });
  releases.push({ name: 'database', release: () => database.close() });
  return database;
}

/** That of `npm start`, which must not run meanwhile. */
async function openEmbedded(folderOfData: string) {
  const [{ lockDataFolder }, { openPglite }, { SwitchyardError }] = await Promise.all([
    import('#shared/storage/data-folder.ts'),
    import('#shared/storage/pglite/open-pglite.ts'),
    import('#shared/errors/switchyard-error.ts'),
  ]);
  const folder = join(folderOfData, 'database');
  if (!existsSync(folder))
    throw new SwitchyardError(
      'config.invalid',
      `DATA_DIR: there is no database in ${folderOfData}; name the folder of \`switchyard start\`, or set DATABASE_URL`,
    );
  const lock = await lockDataFolder(folderOfData);
  releases.push({ name: 'data folder', release: async () => lock.release() });
  const database = await openPglite({ folder });
  releases.push({ name: 'database', release: () => database.close() });
  return database;
}

async function openLog() {
  const { createLog } = await import('#shared/telemetry/log.ts');
  return createLog({ level: process.env['LOG_LEVEL'] || 'warn', format: process.env['LOG_FORMAT'] || null, service: 'operator' });
}

async function brokerAccount() {
  const [{ natsConfigOf }, given] = await Promise.all([import('#shared/config/nats-settings.ts'), settings('NATS_URL', 'NATS_PASSWORD', 'NATS_REPLICAS')]);
  return natsConfigOf('operator', given);
}

/** @throws `config.invalid` naming each setting that is missing or invalid */
async function settings<Name extends keyof Settings>(...names: Name[]) {
  const [{ settingsOf }, { readSettings }] = await Promise.all([import('#shared/config/setting-table.ts'), import('#shared/config/settings.ts')]);
  const all = settingsOf('operator');
  const shape = Object.fromEntries(names.map((name) => [name, all[name]])) as Pick<Settings, Name>;
  return readSettings(shape, process.env);
}
type Settings = import('#shared/config/setting-table.ts').SettingsOf<'operator'>;

async function* readLines(prompt: string): AsyncGenerator<string> {
  const isTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true;
  const lines = createInterface({ input: process.stdin, ...(isTerminal && { output: process.stdout }), prompt });
  // Ctrl-D ends the conversation; Ctrl-C ends the process.
  lines.on('SIGINT', () => process.kill(process.pid, 'SIGINT'));
  try {
    if (isTerminal) lines.prompt();
    for await (const line of lines) {
      yield line;
      if (isTerminal) lines.prompt();
    }
  } finally {
    lines.close();
  }
}

// `| head` closes it early.
process.stdout.on('error', () => process.exit());

let exitCode: number = exitCodes.done;
try {
  await program.parseAsync();
} catch (error) {
  exitCode = report(error);
}
await releaseAll();
process.exit(exitCode);

/** Prints a failure to stderr. @returns the exit code */
function report(error: unknown): number {
  goingOn.clear();
  if (error instanceof CommanderError) {
    // Help is no failure, unless it is printed because nothing was asked for.
    if (error.exitCode === 0) return exitCodes.done;
    if (isJson) console.error(failureJson({ code: 'request.invalid', message: error.message.replace(/^error: /, ''), fix: SEE_HELP }));
    return exitCodes.usage;
  }
  const failure = failureToPrint(error);
  // A known error's message is for people; any other error is a bug and shows its stack.
  if (isJson) console.error(failureJson(failure ?? { code: 'internal', message: String(error), fix: null }));
  else console.error(failure === null ? error : failureText(failure));
  return failure?.exitCode ?? exitCodes.failed;
}

async function releaseAll(): Promise<void> {
  if (releases.length === 0) return;
  const [{ Releasers }, log] = await Promise.all([import('#shared/lifecycle/releasers.ts'), openLog()]);
  const releasers = new Releasers(log);
  for (const { name, release } of releases) releasers.add(name, release);
  await releasers.releaseAll({ timeoutMs: CLOSE_TIMEOUT_MS });
}
