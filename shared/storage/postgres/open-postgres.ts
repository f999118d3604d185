import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { SwitchyardError } from '../../errors/switchyard-error.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Database } from '../database.ts';
import { type Reachability, reachability } from '../reachability.ts';
import { columnTypes } from './column-types.ts';
import { poolDatabase, TRAVEL_MS } from './pool-database.ts';
import { refusalOf, withoutCredentials } from './refusal.ts';

/** Connections of one process. A server allows a hundred in all unless told otherwise, and a dozen processes share it. */
const MAX_CONNECTIONS = 8;

/** How long the first connection may take to come about: a supervisor starts processes and stores together. */
const OPEN_BUDGET_MS = 8_000;
const OPEN_FIRST_PAUSE_MS = 100;
const OPEN_LONGEST_PAUSE_MS = 1_000;

/** For a new connection, and for a free one when all are taken. */
const CONNECT_TIMEOUT_MS = 5_000;

/** Connections that nobody has used for so long are closed. */
const IDLE_TIMEOUT_MS = 60_000;

/** Every statement of ours is indexed and bounded; the largest moves 30 MiB. A statement that takes longer is stuck, or a fault of ours. */
const STATEMENT_TIMEOUT_MS = 20_000;

/** Rows are locked for the length of one commit. */
const LOCK_TIMEOUT_MS = 2_000;

/** Within a transaction nothing but the database is awaited, so a silent one belongs to a process that hangs, and holds rows that others wait for. */
const IDLE_IN_TRANSACTION_MS = 10_000;

/** Silence on an idle connection after which TCP asks whether the other side is there; it gives up some ten seconds later. */
const KEEP_ALIVE_MS = 10_000;

/** What we rely on in every session, whatever the database or the role has set: `pg` reads instants as ISO writes them. */
const SESSION = '-c datestyle=ISO -c timezone=UTC';

export interface PostgresOptions {
  /** `postgres://user:password@host:port/database`, with `pg`’s parameters, such as `sslmode`, which go before what is set here. */
  url: string;
  /** How the connections are named in the server's own lists. */
  applicationName: string;
  /** At most 8, and 8 by default. */
  maxConnections?: number;
  log: Log;
  /** In place of 20 s; how soon a connection that has gone silently is noticed depends on it too. */
  statementTimeoutMs?: number;
}

/**
 * Opens PostgreSQL, once a first statement has been answered. A connection that is lost later fails the statements that it carried;
 * the next statement opens another one, so the database works again as soon as the server does. A server that has gone without a word
 * is noticed within `statementTimeoutMs` and five seconds more.
 *
 * @throws `config.invalid` for a URL that is none; `service.unreachable`, naming the server, its port and the database, when it refuses
 * us, at once, or when it does not answer within 8 s
 */
export async function openPostgres({ url, applicationName, maxConnections = MAX_CONNECTIONS, log, ...limits }: PostgresOptions): Promise<Database> {
  const statementTimeoutMs = limits.statementTimeoutMs ?? STATEMENT_TIMEOUT_MS;
  const config: pg.PoolConfig = {
    connectionString: url,
    application_name: applicationName,
    types: columnTypes,
    options: SESSION,
    lock_timeout: LOCK_TIMEOUT_MS,
    statement_timeout: statementTimeoutMs,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
    max: Math.min(maxConnections, MAX_CONNECTIONS),
  };
  const name = `PostgreSQL at ${placeOf(config)}`;
  await awaitServer(config, name);

  const reached = reachability(log, name);
  const pool = new pg.Pool(config);
  listen(pool, reached);
  return poolDatabase(pool, { queryTimeoutMs: statementTimeoutMs + TRAVEL_MS, onUnreachable: (cause) => reached.lost(withoutCredentials(cause)) });
}

/** @returns `host:port/database` @throws `config.invalid` */
function placeOf(config: pg.PoolConfig): string {
  const { connectionString = '' } = config;
  if (!/^postgres(ql)?:\/\//i.test(connectionString)) throw invalidUrl('it does not begin with postgres://');
  try {
    // Opens nothing; it reads the URL and the environment just as every connection will.
    const { host, port, database = '' } = new pg.Client(config);
    return `${host.includes(':') ? `[${host}]` : host}:${port}/${database}`;
  } catch (error) {
    // The error may hold the URL, and the URL a password. A file that the URL names is worth telling.
    const isMissingFile = error instanceof Error && 'code' in error && error.code === 'ENOENT' && 'path' in error;
    throw invalidUrl(
      isMissingFile ? `there is no file ${String(error.path)}` : 'it can not be read; special characters in a password are written as %40 and the like',
    );
  }
}

function invalidUrl(why: string): SwitchyardError {
  return new SwitchyardError('config.invalid', `the URL of PostgreSQL is no such URL: ${why}`);
}

async function awaitServer(config: pg.PoolConfig, name: string): Promise<void> {
  const untilMs = Date.now() + OPEN_BUDGET_MS;
  for (let pauseMs = OPEN_FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, OPEN_LONGEST_PAUSE_MS)) {
    try {
      return await selectOne(config, Math.min(CONNECT_TIMEOUT_MS, untilMs - Date.now()));
    } catch (error) {
      const refusal = refusalOf(error);
      // No cause: it may name the user.
      if (refusal !== null) throw new SwitchyardError('service.unreachable', `${name} ${refusal}`);
      if (Date.now() + pauseMs >= untilMs) {
        throw new SwitchyardError('service.unreachable', `${name} has not answered for ${OPEN_BUDGET_MS / 1_000} s`, { cause: error });
      }
      await delay(pauseMs);
    }
  }
}

/** It accepts connections before it accepts statements, so only an answer proves it. */
async function selectOne(config: pg.PoolConfig, timeoutMs: number): Promise<void> {
  const client = new pg.Client({ ...config, connectionTimeoutMillis: timeoutMs, query_timeout: timeoutMs });
  client.on('error', () => {}); // told by the statement as well
  try {
    await client.connect();
    await client.query('select 1');
  } finally {
    // Not awaited: a server that has fallen silent would not answer the goodbye either.
    void client.end();
  }
}

function listen(pool: pg.Pool, reached: Reachability): void {
  pool.on('connect', () => reached.found());
  pool.on('error', (error) => reached.lost(withoutCredentials(error)));
}
