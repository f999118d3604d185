import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { silentLog } from '../../telemetry/log.ts';
import { type FreshDatabase, freshDatabase } from '../conformance/fresh-database.ts';
import { databaseConformance } from '../conformance.ts';
import type { Database } from '../database.ts';
import { isTransientError } from '../transient-error.ts';
import { openPostgres } from './open-postgres.ts';

databaseConformance('postgres', async () => {
  const fresh = await freshDatabase(inject('postgresUrl'));
  const database = await openPostgres({ url: fresh.url, applicationName: 'conformance', log: silentLog });
  return {
    database,
    close: async () => {
      await database.close();
      await fresh.drop();
    },
  };
});

/** The machine may be busy. */
const POLL = { timeout: 60_000 };

describe('a PostgreSQL server', () => {
  let fresh: FreshDatabase;
  let database: Database;

  beforeAll(async () => {
    fresh = await freshDatabase(inject('postgresUrl'));
    database = await openPostgres({ url: fresh.url, applicationName: 'test of the driver', log: silentLog, statementTimeoutMs: 3_000 });
  });
  afterAll(async () => {
    await database?.close();
    await fresh?.drop();
  });

  const failureOf = (work: Promise<unknown>): Promise<unknown> =>
    work.then(
      () => 'nothing failed',
      (error: unknown) => error,
    );

  it('ends a statement that takes too long, and its connection works on', async () => {
    const failure = await failureOf(database.query('select pg_sleep(30)'));

    expect(failure).toMatchObject({ code: '57014' });
    expect(isTransientError(failure)).toBe(true);
    expect((await database.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  });

  it('fails after two seconds on a row that another transaction has locked', async () => {
    await database.query('create table held (id int primary key); insert into held values (1)');

    const failure = await database.transaction(
      async (handle) => {
        await handle.query('select id from held for update');
        // A connection of its own, since the handle's own is not the one that waits.
        return failureOf(openAndRun(fresh.url, 'update held set id = 1'));
      },
      { statementTimeoutMs: 30_000 },
    );

    expect(failure).toMatchObject({ code: '55P03' });
    expect(isTransientError(failure)).toBe(true);
  });

  it('reports a deadlock and a serialization conflict as transient errors', async () => {
    await database.query('create table crossed (id int primary key, n int); insert into crossed values (1, 0), (2, 0)');
    const meet = meeting(2);
    const crossing = (first: number, second: number) =>
      database.transaction(async (handle) => {
        await handle.query("set local lock_timeout = '10s'; set local deadlock_timeout = '100ms'");
        await handle.query('update crossed set n = n + 1 where id = $1', [first]);
        await meet();
        await handle.query('update crossed set n = n + 1 where id = $1', [second]);
      });
    const skewed = (read: number, written: number) =>
      database.transaction(async (handle) => {
        await handle.query('set transaction isolation level serializable');
        await handle.query('select n from crossed where id = $1', [read]);
        await meet();
        await handle.query('update crossed set n = n + 1 where id = $1', [written]);
      });

    for (const [code, both] of [
      ['40P01', () => [crossing(1, 2), crossing(2, 1)]],
      ['40001', () => [skewed(1, 2), skewed(2, 1)]],
    ] as const) {
      const failures = (await Promise.allSettled(both())).flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
      expect(failures).toMatchObject([{ code }]);
      expect(isTransientError(failures[0])).toBe(true);
    }
  });

  it('ends the transaction of a process that hangs, with its locks', async () => {
    const impatient = new URL(fresh.url);
    impatient.searchParams.set('idle_in_transaction_session_timeout', '200');
    const hanging = await openPostgres({ url: impatient.href, applicationName: 'hangs', log: silentLog });
    await database.query('create table clutched (id int primary key); insert into clutched values (1)');

    const failure = await failureOf(
      hanging.transaction(async (handle) => {
        await handle.query('select id from clutched for update');
        // Until the other session has the row lock.
        await database.query('update clutched set id = 2').catch(() => {});
        await handle.query('update clutched set id = 3');
      }),
    );

    expect(isTransientError(failure)).toBe(true);
    expect((await database.query('select id from clutched')).rows).toEqual([{ id: 2 }]);
    expect((await hanging.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
    await hanging.close();
  });

  it('opens no more than eight connections, whatever it is asked for, and serves a hundred statements with them', async () => {
    const many = await openPostgres({ url: fresh.url, applicationName: 'greedy', log: silentLog, maxConnections: 50 });

    await Promise.all(Array.from({ length: 100 }, () => many.query('select pg_sleep(0.01)')));

    const { rows } = await many.query("select count(*) from pg_stat_activity where application_name = 'greedy'");
    expect(rows).toEqual([{ count: 8 }]);
    await many.close();
  });

  it('reads instants the same, whatever the database has been set to', async () => {
    const odd = await freshDatabase(inject('postgresUrl'));
    const name = new URL(odd.url).pathname.slice(1);
    await odd.administer(`alter database ${name} set datestyle = 'German'`);
    await odd.administer(`alter database ${name} set timezone = 'Asia/Kolkata'`);
    const there = await openPostgres({ url: odd.url, applicationName: 'test', log: silentLog });

    const instant = new Date('2024-02-29T12:34:56.789Z');
    expect((await there.query('select $1::timestamptz as value', [instant])).rows).toEqual([{ value: instant }]);
    expect((await there.query("select current_setting('TimeZone') as value")).rows).toEqual([{ value: 'UTC' }]);
    await there.close();
    await odd.drop();
  });

  it('looks for another server when the one it has only reads, as after a failover', async () => {
    await database.query('create table written (id int)');
    const name = new URL(fresh.url).pathname.slice(1);
    await fresh.administer(`alter database ${name} set default_transaction_read_only = on`);
    const late = await openPostgres({ url: fresh.url, applicationName: 'late', log: silentLog, maxConnections: 1 });

    const failure = await failureOf(late.query('insert into written values (1)'));
    await fresh.administer(`alter database ${name} reset default_transaction_read_only`);

    expect(failure).toMatchObject({ code: '25006' });
    expect(isTransientError(failure)).toBe(true);
    expect((await late.query('insert into written values (1)')).rowCount).toBe(1);
    await late.close();
  });

  it('works on when every one of its connections was ended by an administrator', async () => {
    const named = { name: 'survivor', text: 'select $1::int as value' };
    await Promise.all(Array.from({ length: 8 }, () => database.query(named, [1])));

    const running = Promise.all(Array.from({ length: 4 }, () => failureOf(database.query('select pg_sleep(2)'))));
    await expect.poll(async () => (await activity(fresh)).filter(({ state }) => state === 'active').length, POLL).toBe(4);
    await fresh.administer(
      `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'test of the driver' and datname = '${new URL(fresh.url).pathname.slice(1)}'`,
    );

    for (const failure of await running) {
      expect(failure).toMatchObject({ code: '57P01' });
      expect(isTransientError(failure)).toBe(true);
    }
    // Idle connections leave the pool once their end is read; a statement that is faster fails with a transient error.
    await expect.poll(() => database.query(named, [2]).then(({ rows }) => rows, isTransientError), POLL).toEqual([{ value: 2 }]);
    expect(await Promise.all(Array.from({ length: 8 }, () => database.query(named, [3])))).toEqual(
      Array.from({ length: 8 }, () => ({ rows: [{ value: 3 }], rowCount: 1 })),
    );
  });
});

describe('opening PostgreSQL', () => {
  it.each([
    ['no URL at all', 'postgres'],
    ['another protocol', 'mysql://root:secret@127.0.0.1/db'],
    ['a port that can not be', 'postgres://root:secret@127.0.0.1:99999/db'],
    ['a certificate that is not there', 'postgres://root:secret@127.0.0.1/db?sslmode=verify-full&sslrootcert=/no/such/file'],
  ])('is refused at once for %s, without repeating it', async (_, url) => {
    const opening = openPostgres({ url, applicationName: 'test', log: silentLog });

    await expect(opening).rejects.toMatchObject({ code: 'config.invalid', message: expect.not.stringContaining('secret') });
    await expect(opening).rejects.not.toHaveProperty('cause', expect.anything());
  });

  it('names the server and a missing database, at once', async () => {
    const { host } = new URL(inject('postgresUrl'));
    const attempts = vi.spyOn(pg.Client.prototype, 'connect');
    onTestFinished(() => attempts.mockRestore());

    const opening = openPostgres({ url: `postgres://postgres:secret@${host}/nowhere`, applicationName: 'test', log: silentLog });

    await expect(opening).rejects.toMatchObject({ code: 'service.unreachable', message: `PostgreSQL at ${host}/nowhere has no such database` });
    expect(attempts).toHaveBeenCalledTimes(1);
  });

  it('reports at once that a server has no TLS', async () => {
    const url = new URL(inject('postgresUrl'));
    url.searchParams.set('sslmode', 'verify-full');

    const opening = openPostgres({ url: url.href, applicationName: 'test', log: silentLog });

    await expect(opening).rejects.toMatchObject({ code: 'service.unreachable', message: expect.stringContaining('TLS') });
  });
});

async function openAndRun(url: string, statement: string): Promise<void> {
  const other = await openPostgres({ url, applicationName: 'another process', log: silentLog });
  try {
    await other.query(statement);
  } finally {
    await other.close();
  }
}

async function activity(fresh: FreshDatabase): Promise<{ state: string }[]> {
  const watcher = await openPostgres({ url: fresh.url, applicationName: 'watcher', log: silentLog });
  try {
    const { rows } = await watcher.query<{ state: string }>("select state from pg_stat_activity where application_name = 'test of the driver'");
    return rows;
  } finally {
    await watcher.close();
  }
}

/** Each call resolves once that many calls were made; then the count restarts. */
function meeting(size: number): () => Promise<void> {
  let arrived: (() => void)[] = [];
  return () =>
    new Promise((resolve) => {
      arrived.push(resolve);
      if (arrived.length < size) return;
      for (const go of arrived) go();
      arrived = [];
    });
}
