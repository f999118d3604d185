import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, type TestContext, vi } from 'vitest';
import { startTestPostgres, type TestPostgres } from '../../scripts/servers/test-services.mjs';
import { freePort } from '../../scripts/servers/test-tcp.mjs';
import type { Database, NamedStatement } from '../../shared/storage/database.ts';
import { openPostgres } from '../../shared/storage/postgres/open-postgres.ts';
import { isTransientError } from '../../shared/storage/transient-error.ts';
import { silentLog } from '../../shared/telemetry/log.ts';
import { eventually } from '../helpers/eventually.ts';
import { logLines } from '../helpers/log-lines.ts';
import { type TcpProxy, tcpProxy } from '../helpers/tcp-proxy.ts';
import { casesOfToday } from '../helpers/tier.ts';

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** That tests stop and restart, and leave running; making one takes longer than most of them. */
let shared: TestPostgres;
beforeAll(async () => {
  shared = await startTestPostgres({ durable: true });
});
afterAll(() => shared.close());

async function ownServer(options: Parameters<typeof startTestPostgres>[0] = {}): Promise<TestPostgres> {
  const server = await startTestPostgres(options);
  cleanups.push(() => server.close());
  return server;
}

async function openAt(url: string, options: { statementTimeoutMs?: number; log?: typeof silentLog } = {}): Promise<Database> {
  const database = await openPostgres({ url, applicationName: 'test', log: silentLog, ...options });
  cleanups.push(() => database.close());
  return database;
}

async function failureOf(work: Promise<unknown>): Promise<unknown> {
  try {
    await work;
  } catch (error) {
    return error;
  }
  throw new Error('nothing failed');
}

const insert: NamedStatement = { name: 'insert-written', text: 'insert into written (id) values ($1)' };

/** Writers that retry through transient errors, as the runtime does: after each they read whether the row is stored. */
function startWriters(database: Database, count: number) {
  const acknowledged: number[] = [];
  const faults: unknown[] = [];
  const refused: unknown[] = [];
  let next = 0;
  let goesOn = true;
  const isThere = async (id: number): Promise<boolean> => (await database.query('select 1 from written where id = $1', [id])).rowCount === 1;
  const unlessTransient = async <Result>(work: () => Promise<Result>): Promise<Result | null> => {
    try {
      return await work();
    } catch (error) {
      if (!isTransientError(error)) throw error;
      faults.push(error);
      return null;
    }
  };
  const write = async (id: number, writer: number): Promise<void> => {
    const once = writer % 2 === 0 ? () => database.query(insert, [id]) : () => database.transaction((handle) => handle.query(insert, [id]));
    for (let isFirst = true; goesOn; isFirst = false) {
      if (!isFirst && (await unlessTransient(() => isThere(id))) !== false) continue;
      if ((await unlessTransient(once)) === null) continue;
      acknowledged.push(id);
      return;
    }
  };
  const run = async (writer: number): Promise<void> => {
    while (goesOn) {
      next += 1;
      await write(next, writer);
    }
  };
  const running = Array.from({ length: count }, (_, writer) => run(writer).catch((error: unknown) => refused.push(error)));
  return {
    acknowledged,
    faults,
    refused,
    stop: async () => {
      goesOn = false;
      await Promise.all(running);
    },
  };
}

describe('a PostgreSQL server that is killed under its writers', () => {
  it.each(casesOfToday(['SIGKILL', 'SIGQUIT', 'SIGINT'] as const))('loses nothing that was acknowledged, and every error is transient: %s', async (signal) => {
    const { log, messages } = logLines();
    const database = await openAt(shared.url, { log });
    await database.query('drop table if exists written');
    await database.query('create table written (id int primary key)');
    const writers = startWriters(database, 12);

    for (const goal of [200, 400]) {
      await eventually(() => writers.acknowledged.length >= goal);
      await shared.end(signal);
      const faults = writers.faults.length;
      await eventually(() => writers.faults.length > faults);
      await shared.start();
    }
    const before = writers.acknowledged.length;
    await eventually(() => writers.acknowledged.length > before + 200);
    await writers.stop();

    expect(writers.refused).toEqual([]);
    const { rows } = await database.query<{ id: number }>('select id from written');
    const stored = new Set(rows.map(({ id }) => id));
    expect(writers.acknowledged.filter((id) => !stored.has(id))).toEqual([]);
    const name = `PostgreSQL at 127.0.0.1:${shared.port}/postgres`;
    expect(messages()).toEqual(expect.arrayContaining([`${name} is unreachable`, `${name} is reachable again`]));
    // Thousands of failed statements are not worth a line each.
    expect(messages().length).toBeLessThan(40);
  });

  it('fails statements at once while it is away, and serves the next one after its return', async () => {
    const database = await openAt(shared.url);
    await database.query('select 1');
    await shared.end('SIGINT');

    const attempts = vi.spyOn(pg.Client.prototype, 'connect');
    onTestFinished(() => attempts.mockRestore());
    const failures = await Promise.all([failureOf(database.query('select 1')), failureOf(database.transaction(async (handle) => handle.query('select 1')))]);

    // One connect each, without a retry.
    for (const failure of failures) expect(failure).toMatchObject({ code: 'service.unreachable', cause: { code: 'ECONNREFUSED' } });
    expect(attempts).toHaveBeenCalledTimes(failures.length);
    for (const failure of failures) expect(isTransientError(failure)).toBe(true);
    await shared.start();
    expect((await database.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  });

  it('has no free connection: what gets none fails with a transient error', async () => {
    const server = await ownServer({ settings: { max_connections: '4', superuser_reserved_connections: '0', max_wal_senders: '0' } });
    const database = await openAt(server.url);

    const results = await Promise.allSettled(Array.from({ length: 8 }, () => database.query('select pg_sleep(0.3)')));

    const failures = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
    expect(failures.length).toBeGreaterThanOrEqual(4);
    for (const failure of failures) expect(failure).toMatchObject({ code: 'service.unreachable', cause: { code: '53300' } });
    await eventually(() => database.query('select 1'));
  });
});

describe('a PostgreSQL server that no longer responds', () => {
  const STATEMENT_TIMEOUT_MS = 1_000;
  /** The client's limit, the statement's timeout and five seconds; with a frozen connection nothing else ends the wait. */
  const NOTICED = new Error(`the database gave no answer within ${STATEMENT_TIMEOUT_MS + 5_000} ms`);
  /** A connection pool to a database of the test's own, over a way of its own: most of these wait for the limit, and do so at the same time. */
  async function openOwnPool({ onTestFinished, task }: TestContext): Promise<{ proxy: TcpProxy; database: Database; name: string }> {
    const name = `own_pool_${task.id.replaceAll(/\W/g, '_')}`;
    await withShared((watcher) => watcher.query(`create database ${name}`));
    const proxy = await tcpProxy(shared.port);
    onTestFinished(() => proxy.close());
    const url = `postgres://postgres@127.0.0.1:${proxy.port}/${name}`;
    const database = await openPostgres({ url, applicationName: name, log: silentLog, statementTimeoutMs: STATEMENT_TIMEOUT_MS });
    onTestFinished(() => database.close());
    await database.query('create table written (id int primary key)');
    return { proxy, database, name };
  }

  it.concurrent('fails statements, transactions and new connections in time, and works again afterwards', async (context) => {
    const { proxy, database } = await openOwnPool(context);
    await Promise.all(Array.from({ length: 4 }, (_, index) => database.query(insert, [index])));
    let resolveFrozen = () => {};
    const frozen = new Promise<void>((resolve) => {
      resolveFrozen = resolve;
    });
    const inFlight = failureOf(
      database.transaction(async (handle) => {
        await handle.query(insert, [100]);
        proxy.freeze();
        resolveFrozen();
        await handle.query(insert, [101]);
      }),
    );
    await frozen;

    // More of them than the pool has connections.
    const failures = await Promise.all([inFlight, ...Array.from({ length: 12 }, (_, index) => failureOf(database.query(insert, [10 + index])))]);

    expect(failures[0]).toMatchObject({ code: 'service.unreachable', cause: NOTICED });
    for (const failure of failures) expect(isTransientError(failure)).toBe(true);
    proxy.thaw();
    await eventually(() => database.query(insert, [1_000]));
    expect((await database.query('select id from written where id between 100 and 101')).rows).toEqual([]);
  });

  it.concurrent('is noticed under a statement in flight', async (context) => {
    const { proxy, database } = await openOwnPool(context);
    const sleeping = failureOf(database.query('select pg_sleep(0.5)'));
    proxy.freeze();

    const failure = await sleeping;

    expect(failure).toMatchObject({ code: 'service.unreachable', cause: NOTICED });
    expect(isTransientError(failure)).toBe(true);
  });

  it.concurrent('fails what is in flight when the connection is reset, and the next statement gets another connection', async (context) => {
    const { proxy, database, name } = await openOwnPool(context);
    const sleeping = Array.from({ length: 4 }, () => failureOf(database.query('select pg_sleep(0.9)')));
    await eventually(async () => (await activeSleeps(name)) === 4);

    proxy.cut();

    for (const failure of await Promise.all(sleeping)) {
      expect(failure).toMatchObject({ code: 'service.unreachable' });
      expect(isTransientError(failure)).toBe(true);
    }
    expect((await database.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  });

  it.concurrent('does not delay a close', async (context) => {
    const { proxy, database } = await openOwnPool(context);
    await Promise.all(Array.from({ length: 4 }, (_, index) => database.query(insert, [index])));
    proxy.freeze();
    const inFlight = failureOf(database.query('select 1'));

    await database.close();

    const failure = await inFlight;
    expect(failure).toMatchObject({ code: 'service.unreachable', cause: NOTICED });
    expect(isTransientError(failure)).toBe(true);
  });
});

function activeSleeps(name: string): Promise<number> {
  const sleepingStatements = "select 1 from pg_stat_activity where wait_event = 'PgSleep' and application_name = $1";
  return withShared(async (watcher) => (await watcher.query(sleepingStatements, [name])).rowCount);
}

async function withShared<Result>(use: (watcher: Database) => Promise<Result>): Promise<Result> {
  const watcher = await openPostgres({ url: shared.url, applicationName: 'watcher', log: silentLog });
  try {
    return await use(watcher);
  } finally {
    await watcher.close();
  }
}

describe('opening PostgreSQL', () => {
  it('waits for a server that is still starting', async () => {
    // Of its own, with little to recover.
    const server = await ownServer();
    await server.end('SIGKILL');

    const opening = openAt(server.url);
    await server.start();

    expect((await (await opening).query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  });

  it('gives up after eight seconds at a closed port, and at a server that sends nothing', async () => {
    const port = await freePort();
    const silent = await tcpProxy(port);
    cleanups.push(() => silent.close());
    silent.freeze();

    const attempts = [port, silent.port].map(async (at) => {
      const startedAtMs = performance.now();
      const failure = await failureOf(openAt(`postgres://someuser:hidden@127.0.0.1:${at}/agents`));

      expect(failure).toMatchObject({ code: 'service.unreachable', message: `PostgreSQL at 127.0.0.1:${at}/agents has not answered for 8 s` });
      expect(JSON.stringify(failure) + String(failure)).not.toMatch(/hidden|someuser/);
      expect(performance.now() - startedAtMs).toBeGreaterThan(6_000);
    });
    await Promise.all(attempts);
  });
});

describe('a PostgreSQL server with a password', () => {
  /** These two share a server, and the second leaves it with another password. */
  let server: TestPostgres;
  beforeAll(async () => {
    server = await startTestPostgres({ password: 'correct horse/battery@staple' });
  });
  afterAll(() => server.close());

  it('reports a wrong or missing password at once, and never prints it', async () => {
    const { log, lines } = logLines();
    const index = `127.0.0.1:${server.port}/postgres`;
    const attempts = vi.spyOn(pg.Client.prototype, 'connect');
    onTestFinished(() => attempts.mockRestore());

    for (const [credentials, message] of [
      ['postgres:hidden', `PostgreSQL at ${index} refuses the password`],
      ['nouser:hidden', `PostgreSQL at ${index} refuses the password`],
      ['postgres', `PostgreSQL at ${index} requires a password, and the URL has none that fits`],
    ]) {
      attempts.mockClear();
      const failure = await failureOf(openPostgres({ url: `postgres://${credentials}@${index}`, applicationName: 'test', log }));
      expect(failure).toMatchObject({ code: 'service.unreachable', message, cause: undefined });
      expect(attempts).toHaveBeenCalledTimes(1);
    }
    expect((await (await openAt(server.url, { log })).query('select 1 as one')).rows).toEqual([{ one: 1 }]);
    expect(lines.join('\n')).not.toMatch(/hidden|correct horse|nouser/);
  });

  it('treats a password that was changed later as a transient error, and logs it', async () => {
    const { log, lines } = logLines();
    const database = await openAt(server.url, { log });
    await database.query("alter user postgres password 'the second'");
    await server.end('SIGINT');
    await server.start();

    const failure = await failureOf(database.query('select 1'));

    expect(isTransientError(failure)).toBe(true);
    await eventually(() => lines.some((line) => line.includes('refuses the password')));
    expect(lines.join('\n')).not.toMatch(/correct horse|the second/);
  });
});
