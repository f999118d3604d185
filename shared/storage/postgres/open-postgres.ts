import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { SwitchyardError } from '../../errors/switchyard-error.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Database } from '../database.ts';
import { type Reachability, reachability } from '../reachability.ts';
import { columnTypes } from './column-types.ts';
import { NETWORK_MARGIN_MS, poolDatabase } from './pool-database.ts';
import { refusalOf, withoutCredentials } from './refusal.ts';
import { readTransports, type Transports } from './transports.ts';

/** A server allows 100 in all by default, and a dozen processes share it. */
const MAX_CONNECTIONS = 8;

/** A supervisor starts processes and stores together. */
const OPEN_BUDGET_MS = 8_000;
const OPEN_FIRST_PAUSE_MS = 100;
const OPEN_LONGEST_PAUSE_MS = 1_000;

/** For a new connection, and for a free one when all are in use. */
const CONNECT_TIMEOUT_MS = 5_000;

const IDLE_TIMEOUT_MS = 60_000;

/** All statements are indexed and bounded, the largest moves 30 MiB: a slower one is stuck or a bug. */
const STATEMENT_TIMEOUT_MS = 20_000;

/** Rows are locked for the duration of one commit. */
const LOCK_TIMEOUT_MS = 2_000;

/** Only the database is awaited inside a transaction: an idle one belongs to a hung process that holds row locks. */
const IDLE_IN_TRANSACTION_MS = 10_000;

/** Idle time before TCP keep-alive probes; a dead peer is noticed some ten seconds later. */
const KEEP_ALIVE_MS = 10_000;

/** `pg` parses ISO timestamps; the database or the role may have other settings. */
const SESSION = '-c datestyle=ISO -c timezone=UTC';

export interface PostgresOptions {
  /** `postgres://user:password@host:port/database`; `pg`’s parameters override what is set here. `sslmode` means what it means to libpq (ADR 77). */
  url: string;
  /** Shown in `pg_stat_activity`. */
  applicationName: string;
  /** At most 8, and 8 by default. */
  maxConnections?: number;
  log: Log;
  /** Default: 20 s. Also bounds how soon a silently dead connection is noticed. */
  statementTimeoutMs?: number;
  /** Further settings of each session, by name, without spaces in them; a server that does not know one passes over it. */
  settings?: Readonly<Record<string, string>>;
  /** False: resolves without a reply, and statements are refused while the server is unreachable. Default: true. */
  awaitsServer?: boolean;
}

/**
 * Opens PostgreSQL and waits for a first reply, unless `awaitsServer` is false. A lost connection fails the statements in flight on it; the next statement opens another. A server
 * that vanishes silently is noticed within `statementTimeoutMs` plus five seconds.
 *
 * @throws `config.invalid` for an invalid URL; `service.unreachable`, naming server, port and database, at once when it refuses us, or without a
 * reply within 8 s
 */
export async function openPostgres({ url, applicationName, maxConnections = MAX_CONNECTIONS, log, ...limits }: PostgresOptions): Promise<Database> {
  const statementTimeoutMs = limits.statementTimeoutMs ?? STATEMENT_TIMEOUT_MS;
  const { url: connectionString, transports } = readTransportsOf(url);
  const config: pg.PoolConfig = {
    connectionString,
    application_name: applicationName,
    types: columnTypes,
    options: [SESSION, ...Object.entries(limits.settings ?? {}).map(([name, value]) => `-c ${name}=${value}`)].join(' '),
    lock_timeout: LOCK_TIMEOUT_MS,
    statement_timeout: statementTimeoutMs,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
    max: Math.min(maxConnections, MAX_CONNECTIONS),
  };
  const name = `PostgreSQL at ${addressOf(config)}`;
  if (limits.awaitsServer !== false) await awaitServer(config, transports, name);

  const reached = reachability(log, name);
  const pool = new pg.Pool({ ...config, Client: clientOf(transports) });
  listen(pool, reached);
  return poolDatabase(pool, { queryTimeoutMs: statementTimeoutMs + NETWORK_MARGIN_MS, onUnreachable: (cause) => reached.lost(withoutCredentials(cause)) });
}

/** @throws `config.invalid` */
function readTransportsOf(url: string): ReturnType<typeof readTransports> {
  try {
    return readTransports(url);
  } catch (error) {
    if (error instanceof SwitchyardError) throw error;
    const path = error instanceof Error && 'path' in error ? String(error.path) : 'of a certificate';
    throw invalidUrl(error instanceof Error && 'code' in error && error.code === 'ENOENT' ? `there is no file ${path}` : `the file ${path} can't be read`);
  }
}

type ConnectCallback = ((error: Error) => void) | ((error: null, client: pg.Client) => void);

/** Clients that report how they could not connect: the next one does it the other way, where `sslmode` has two. */
function clientOf(transports: Transports): typeof pg.Client {
  return class extends pg.Client {
    constructor(config: pg.ClientConfig = {}) {
      super({ ...config, ssl: transports.current });
    }

    override connect(): Promise<pg.Client>;
    override connect(callback: ConnectCallback): void;
    override connect(callback?: ConnectCallback): Promise<pg.Client> | undefined {
      const connecting = super.connect();
      connecting.catch((error: unknown) => transports.failed(error));
      if (callback === undefined) return connecting;
      const done = (...result: unknown[]) => void Reflect.apply(callback, null, result);
      connecting.then((client) => done(null, client), done);
      return undefined;
    }
  };
}

/** @returns `host:port/database` @throws `config.invalid` */
function addressOf(config: pg.PoolConfig): string {
  const { connectionString = '' } = config;
  if (!/^postgres(ql)?:\/\//i.test(connectionString)) throw invalidUrl('it does not begin with postgres://');
  try {
    // Does not connect; parses the URL and the environment.
    const { host, port, database = '' } = new pg.Client(config);
    return `${host.includes(':') ? `[${host}]` : host}:${port}/${database}`;
  } catch {
    // The error may contain the password.
    throw invalidUrl('it cannot be parsed; special characters in a password have to be percent-encoded, such as @ as %40');
  }
}

function invalidUrl(why: string): SwitchyardError {
  return new SwitchyardError('config.invalid', `the URL of PostgreSQL (DATABASE_URL) is not valid: ${why}`);
}

async function awaitServer(config: pg.PoolConfig, transports: Transports, name: string): Promise<void> {
  const untilMs = Date.now() + OPEN_BUDGET_MS;
  for (let pauseMs = OPEN_FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, OPEN_LONGEST_PAUSE_MS)) {
    const timeoutMs = () => Math.max(1, Math.min(CONNECT_TIMEOUT_MS, untilMs - Date.now()));
    try {
      return await selectOne(config, transports, timeoutMs());
    } catch (error) {
      // With `allow` and `prefer`, once more by the other way, as one attempt.
      const cause = transports.failed(error) ? await failureOf(() => selectOne(config, transports, timeoutMs())) : error;
      if (cause === null) return;
      transports.failed(cause);
      const refusal = refusalOf(cause);
      // No cause: it may name the user.
      if (refusal !== null) throw new SwitchyardError('service.unreachable', `${name} ${refusal}`);
      if (Date.now() + pauseMs >= untilMs) {
        throw new SwitchyardError('service.unreachable', `${name} has not answered for ${OPEN_BUDGET_MS / 1_000} s`, { cause });
      }
      await delay(pauseMs);
    }
  }
}

async function failureOf(work: () => Promise<void>): Promise<unknown> {
  try {
    await work();
    return null;
  } catch (error) {
    return error;
  }
}

/** A server accepts connections before statements: only a reply proves that it is up. */
async function selectOne(config: pg.PoolConfig, { current }: Transports, timeoutMs: number): Promise<void> {
  const client = new pg.Client({ ...config, ssl: current, connectionTimeoutMillis: timeoutMs, query_timeout: timeoutMs });
  client.on('error', () => {}); // the statement rejects too
  try {
    await client.connect();
    await client.query('select 1');
  } finally {
    // Not awaited: a silent server would not acknowledge it.
    void client.end();
  }
}

function listen(pool: pg.Pool, reached: Reachability): void {
  pool.on('connect', () => reached.found());
  pool.on('error', (error) => reached.lost(withoutCredentials(error)));
}
