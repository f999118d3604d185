import type { Clock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Database } from '#shared/storage/database.ts';
import { type Log, silentLog } from '#shared/telemetry/log.ts';
import type { Bus } from '../bus.ts';
import { withLargeBodies } from '../large-bodies.ts';
import { openBlobStore } from './blob-store.ts';
import { openCommandLog } from './command-log.ts';
import { DEFAULT_LIMITS, type MemoryBusLimits } from './limits.ts';
import { openNoticeBoard } from './notice-board.ts';
import { openTokenStream } from './token-stream.ts';
import type { ComponentDeps } from './types.ts';
import { openUsageLog } from './usage-log.ts';
import { openWorkQueue } from './work-queue.ts';

export interface MemoryBusOptions {
  /** The embedded database. The bus creates its tables there, and never closes it. */
  database: Database;
  clock: Clock;
  log?: Log;
  limits?: Partial<MemoryBusLimits>;
}

/** A store that a newer version has written is refused. */
const LAYOUT_VERSION = 1;

const LAYOUT = [
  'create table if not exists bus_meta (key text primary key, value text not null)',
  `create table if not exists bus_log (
    sequence bigint primary key, p int not null, message_id text not null, body text not null, stored_at_ms bigint not null)`,
  'create index if not exists bus_log_p on bus_log (p, sequence)',
  `create table if not exists bus_work (
    id bigint primary key, kind text not null, message_id text not null, body text not null, published_at_ms bigint not null, delivery int not null)`,
  `create table if not exists bus_blobs (
    id text not null, part int not null, parts int not null, bytes bytea not null, expires_at_ms bigint not null, primary key (id, part))`,
  'create index if not exists bus_blobs_expiry on bus_blobs (expires_at_ms)',
  'create table if not exists bus_usage (sequence bigint primary key, message_id text not null, body text not null, stored_at_ms bigint not null)',
  // Bodies are soon deleted: compressing them costs more than it saves.
  'alter table bus_log alter column body set storage external',
  'alter table bus_work alter column body set storage external',
  'alter table bus_blobs alter column bytes set storage external',
];

/**
 * The embedded bus, for one process. One open bus per database: two would assign the same sequences. Commands, work, usage and blobs are in tables, notices
 * and tokens in memory. The embedded database never flushes to disk: commits survive a crash of the process, not of the machine.
 *
 * @throws `storage.schema_refused` when a newer version has created the tables
 */
export async function openMemoryBus({ database, clock, log = silentLog, limits = {} }: MemoryBusOptions): Promise<Bus> {
  await prepareTables(database);
  const deps: ComponentDeps = { database, clock, log, limits: { ...DEFAULT_LIMITS, ...limits } };
  const commands = await openCommandLog(deps);
  const work = await openWorkQueue(deps);
  const notices = openNoticeBoard(deps);
  const tokens = openTokenStream(deps);
  const blobs = await openBlobStore(deps);
  const usage = await openUsageLog(deps);
  const parts = [commands, work, notices, tokens, blobs, usage];
  let closing: Promise<void> | null = null;

  async function close(): Promise<void> {
    // Running handlers may append, publish and ack: refuse nothing before the last has returned.
    await Promise.all(parts.map((part) => part.stopReaders()));
    await Promise.all(parts.map((part) => part.shut()));
  }

  return withLargeBodies({
    commands,
    work,
    notices,
    tokens,
    blobs,
    usage,
    isReady: () => closing === null,
    connectionNumber: () => 1,
    flush: () => {},
    hasCapacity: (kind) => commands.hasCapacity() && work.hasCapacity() && usage.hasCapacity() && (kind === undefined || work.admits(kind)),
    // It is never away.
    onReconnect: () => ({ stop: async () => {} }),
    close: () => {
      closing ??= close();
      return closing;
    },
  });
}

async function prepareTables(database: Database): Promise<void> {
  for (const statement of LAYOUT) await database.query(statement);
  await database.query(`insert into bus_meta (key, value) values ('layout', $1) on conflict (key) do nothing`, [String(LAYOUT_VERSION)]);
  const { rows } = await database.query<{ value: string }>(`select value from bus_meta where key = 'layout'`);
  const found = Number(rows[0]?.value);
  if (found > LAYOUT_VERSION) {
    throw new SwitchyardError('storage.schema_refused', `the bus tables have layout ${found}, this program knows ${LAYOUT_VERSION}: start the newer version`);
  }
}
