import { expect, it } from 'vitest';
import type { Database } from '../database.ts';

/** Transactions are atomic and admit their own handle only. */
export function transactionCases(name: string, database: () => Database): void {
  const idsOf = async (table: string): Promise<number[]> => {
    const { rows } = await database().query<{ id: number }>(`select id from ${table} order by id`);
    return rows.map(({ id }) => id);
  };

  it(`${name}: keeps nothing of a transaction whose work throws, and passes the error on`, async () => {
    await database().query('create table thrown (id int)');
    const failure = new Error('changed our mind');

    const work = database().transaction(async (handle) => {
      await handle.query('insert into thrown values (1)');
      throw failure;
    });

    await expect(work).rejects.toBe(failure);
    expect(await idsOf('thrown')).toEqual([]);
  });

  it(`${name}: keeps nothing of a transaction in which a statement failed, even if its work goes on as if nothing had happened`, async () => {
    await database().query('create table failed (id int primary key)');

    const work = database().transaction(async (handle) => {
      await handle.query('insert into failed values (1)');
      await handle.query('insert into failed values (1)').catch(() => {});
      return 'done';
    });

    await expect(work).rejects.toMatchObject({ code: '23505' });
    expect(await idsOf('failed')).toEqual([]);
  });

  it(`DESIGN 3: ${name} refuses the database itself inside a transaction, where it would wait for itself`, async () => {
    await database().query('create table guarded (id int)');

    const seen = await database().transaction(async (handle) => {
      await handle.query('insert into guarded values (1)');
      const attempts = [database().query('select 1'), database().transaction(async () => 1), database().close()];
      return Promise.allSettled(attempts);
    });

    for (const attempt of seen) expect(attempt).toMatchObject({ status: 'rejected', reason: { code: 'storage.wrong_handle' } });
    expect(await idsOf('guarded')).toEqual([1]);
  });

  it(`DESIGN 3: ${name} refuses a transaction's handle once the transaction has ended, either way`, async () => {
    const leaked = await database().transaction(async (handle) => ({ handle }));
    await expect(leaked.handle.query('select 1')).rejects.toMatchObject({ code: 'storage.wrong_handle' });

    const handles: Pick<Database, 'query'>[] = [];
    const failing = database().transaction(async (handle) => {
      handles.push(handle);
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    await expect(handles[0]?.query('select 1')).rejects.toMatchObject({ code: 'storage.wrong_handle' });
  });

  it(`${name}: serves what a transaction started and did not wait for, once the transaction has ended`, async () => {
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const late = await database().transaction(async () => ({
      later: ended.then(() => Promise.all([database().query<{ one: number }>('select 1 as one'), database().transaction(async () => 2)])),
    }));
    end();

    const [query, transaction] = await late.later;
    expect([query.rows, transaction]).toEqual([[{ one: 1 }], 2]);
  });

  it(`${name}: commits what its work sent without waiting`, async () => {
    await database().query('create table unawaited (id int)');
    const pending: Promise<unknown>[] = [];

    await database().transaction(async (handle) => {
      for (const id of [1, 2, 3]) pending.push(handle.query('insert into unawaited values ($1)', [id]));
    });

    await Promise.all(pending);
    expect(await idsOf('unawaited')).toEqual([1, 2, 3]);
  });

  it(`${name}: commits and returns what the work returned, unseen by others before`, async () => {
    await database().query('create table committed (id int)');

    const result = await database().transaction(async (handle) => {
      await handle.query('insert into committed values (1)');
      const { rows } = await handle.query<{ id: number }>('select id from committed');
      return rows;
    });

    expect(result).toEqual([{ id: 1 }]);
    expect(await idsOf('committed')).toEqual([1]);
  });

  it(`${name}: lets the statements of one transaction take longer, and of no other`, async () => {
    const limitOf = (handle: Pick<Database, 'query'>) => handle.query<{ value: string }>("select current_setting('statement_timeout') as value");
    const usual = await limitOf(database());

    const longer = await database().transaction((handle) => limitOf(handle), { statementTimeoutMs: 90_000 });

    expect(longer.rows).toEqual([{ value: '90s' }]);
    expect(await database().transaction((handle) => limitOf(handle))).toEqual(usual);
  });

  it(`${name}: keeps what a savepoint rescued`, async () => {
    await database().query('create table rescued (id int primary key)');

    await database().transaction(async (handle) => {
      await handle.query('insert into rescued values (1)');
      await handle.query('savepoint before');
      await handle.query('insert into rescued values (1)').catch(() => {});
      await handle.query('rollback to savepoint before');
      await handle.query('insert into rescued values (2)');
    });

    expect(await idsOf('rescued')).toEqual([1, 2]);
  });

  it(`${name}: brings twenty transactions on one row, and the statements between them, to an end without a deadlock`, async () => {
    await database().query('create table contended (id int, count int); insert into contended values (1, 0)');
    const increment = () =>
      database().transaction(async (handle) => {
        const { rows } = await handle.query<{ count: number }>('select count from contended where id = 1 for update');
        await handle.query('update contended set count = $1 where id = 1', [(rows[0]?.count ?? 0) + 1]);
      });

    await Promise.all(Array.from({ length: 20 }, () => [increment(), database().query('select count from contended')]).flat());

    expect((await database().query('select count from contended')).rows).toEqual([{ count: 20 }]);
  });
}
