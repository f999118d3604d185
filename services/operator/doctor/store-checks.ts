import { readdir } from 'node:fs/promises';
import type { StreamState } from '#bus/stream-upgrade.ts';
import type { Clock } from '#shared/clock.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import type { Database } from '#shared/storage/database.ts';
import { dataFolder, runningServer } from '../targets.ts';
import { type Check, type Finding, ok, problem } from './finding.ts';

/** Timers, leases and expiries compare times of several machines. */
const CLOCK_WARNING_MS = 1_000;
const CLOCK_FAILURE_MS = 30_000;

export interface StoreDeps {
  environment: Environment;
  openDatabase(): Promise<Database>;
  inspectStreams(): Promise<StreamState[]>;
  /** One request and its answer. */
  pingCache(): Promise<void>;
  clock: Clock;
}

/** The stores that the environment names; without any, those of `start`. */
export function storeChecks({ environment, openDatabase, inspectStreams, pingCache, clock }: StoreDeps): Check[] {
  const checks: Check[] = [];
  const databaseFix = 'start PostgreSQL, and compare DATABASE_URL with its address, user and password';
  if (environment['DATABASE_URL']) checks.push({ name: 'database', fix: databaseFix, run: async () => checkDatabase(await openDatabase(), clock) });
  else checks.push({ name: 'database', fix: 'set DATABASE_URL, or run `switchyard start` once', run: () => checkEmbedded(environment) });
  if (environment['NATS_URL']) {
    const fix = 'start nats-server with deploy/nats/nats-server.conf, and set NATS_PASSWORD to that of its user `operator`';
    checks.push({ name: 'broker', fix, run: async () => streamFindings(await inspectStreams()) });
  }
  if (environment['REDIS_URL']) {
    const fix = 'start Redis, and compare REDIS_URL with its address and password; without it limits are counted by each process';
    checks.push({ name: 'cache', fix, run: () => pingCache().then(() => [ok('Redis answers')]) });
  }
  return checks;
}

async function checkDatabase(database: Database, clock: Clock): Promise<Omit<Finding, 'check'>[]> {
  const beforeMs = clock.nowMs();
  const { rows } = await database.query<{ at_ms: string; version: string; has_schema: boolean }>(
    `select extract(epoch from clock_timestamp()) * 1000 as at_ms, current_setting('server_version') as version,
            to_regclass('schema_migrations') is not null as has_schema`,
  );
  const [row] = rows;
  if (row === undefined) throw new Error('the database gives no row');
  const middleMs = (beforeMs + clock.nowMs()) / 2;
  return [ok(`PostgreSQL ${row.version} answers`), clockFinding(Number(row.at_ms) - middleMs), await checkSchema(database, row.has_schema)];
}

export function clockFinding(differenceMs: number): Omit<Finding, 'check'> {
  const seconds = (Math.abs(differenceMs) / 1_000).toFixed(1);
  if (Math.abs(differenceMs) < CLOCK_WARNING_MS) return ok('its clock agrees with this one');
  const detail = `its clock is ${seconds} s ${differenceMs > 0 ? 'ahead of' : 'behind'} this one`;
  return problem(Math.abs(differenceMs) < CLOCK_FAILURE_MS ? 'warning' : 'failed', detail, 'run a time service, such as chrony, on both machines');
}

async function checkSchema(database: Database, hasSchema: boolean): Promise<Omit<Finding, 'check'>> {
  const files = await readdir(new URL('../../../shared/storage/migrations/', import.meta.url));
  const known = files.filter((name) => name.endsWith('.sql')).length;
  const { rows } = hasSchema ? await database.query<{ count: number }>('select count(*)::int as count from schema_migrations') : { rows: [] };
  return schemaFinding({ applied: rows[0]?.count ?? 0, known });
}

/** Migrations of the database, and of this release. */
export function schemaFinding({ applied, known }: { applied: number; known: number }): Omit<Finding, 'check'> {
  if (applied === known) return ok(`its schema is that of this release (${applied} migrations)`);
  if (applied > known)
    return problem('failed', `its schema has ${applied} migrations, this release ${known}: a newer release has run`, 'run that release, or a newer one');
  return problem('warning', `its schema has ${applied} of ${known} migrations`, 'start a process of this release: it applies the others');
}

async function checkEmbedded(environment: Environment): Promise<Omit<Finding, 'check'>[]> {
  const folder = dataFolder(environment);
  const running = await runningServer(folder);
  if (running?.isCluster)
    return [ok(`process ${running.pid} runs a cluster with PostgreSQL: set DATABASE_URL to the address that it has printed, and doctor looks at it`)];
  if (running !== null) return [ok(`process ${running.pid} uses the embedded database in ${folder}`)];
  return [ok(`no DATABASE_URL is set: \`start\` uses the embedded database in ${folder}`)];
}

const UPGRADE = 'run `switchyard streams` as the user `operator` of the broker';

export function streamFindings(streams: readonly StreamState[]): Omit<Finding, 'check'>[] {
  return [ok(`the broker answers; ${streams.length} streams`), ...streams.map(streamFinding).filter((found) => found !== null)];
}

/** Null: it is as declared. */
function streamFinding({ name, state, fields }: StreamState): Omit<Finding, 'check'> | null {
  switch (state) {
    case 'declared':
      return null;
    case 'missing':
      return problem('warning', `the stream ${name} does not exist yet`, UPGRADE);
    case 'different':
      return problem('warning', `the stream ${name} is not as this release declares it: ${fields.join(', ')}`, UPGRADE);
    case 'copying':
      return problem(
        'failed',
        `the stream ${name} copies messages past the permissions of the users: ${fields.join(', ')}`,
        `delete the stream ${name} (docs/deploy.md)`,
      );
  }
}
