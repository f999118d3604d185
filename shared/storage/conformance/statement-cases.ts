import { expect, it } from 'vitest';
import type { Database, NamedStatement } from '../database.ts';

const LARGE_TIMEOUT_MS = 240_000;
const MIB = 1_024 * 1_024;

/** Single statements: errors, names, counts, batches, sizes. */
export function statementCases(name: string, database: () => Database): void {
  it(`${name}: gives the SQLSTATE of a failed statement in its code`, async () => {
    await database().query('create table unique_ids (id int primary key)');
    await database().query('insert into unique_ids values (1)');

    await expect(database().query('insert into unique_ids values ($1)', [1])).rejects.toMatchObject({ code: '23505' });
    await expect(database().query('select * from no_such_table')).rejects.toMatchObject({ code: '42P01' });
    await expect(database().query('selec 1')).rejects.toMatchObject({ code: '42601' });
  });

  it(`${name}: reuses a named statement, also after it has failed while running or while being prepared`, async () => {
    const insert: NamedStatement = { name: 'conformance-insert', text: 'insert into named_ids (id) values ($1)' };

    await expect(database().query(insert, [1])).rejects.toMatchObject({ code: '42P01' });
    await database().query('create table named_ids (id int primary key)');
    await database().query(insert, [1]);
    await expect(database().query(insert, [1])).rejects.toMatchObject({ code: '23505' });
    await expect(database().query(insert, ['no number'])).rejects.toMatchObject({ code: '22P02' });
    await database().query(insert, [2]);

    expect((await database().query('select id from named_ids order by id')).rows).toEqual([{ id: 1 }, { id: 2 }]);
  });

  it(`${name}: runs a named statement after a migration changed the columns that it returns`, async () => {
    const read: NamedStatement = { name: 'conformance-changed', text: 'select * from changed' };
    await database().query('create table changed (id int); insert into changed values (1)');
    // Concurrently, so that a pool prepares it on all of its connections.
    await Promise.all(Array.from({ length: 20 }, () => database().query(read)));

    await database().query("alter table changed add column note text not null default 'new'");

    const answers = await Promise.all(Array.from({ length: 20 }, () => database().query(read)));
    expect(answers.map(({ rows }) => rows)).toEqual(answers.map(() => [{ id: 1, note: 'new' }]));
  });

  it(`${name}: refuses a second text under the name of a statement`, async () => {
    await database().query({ name: 'conformance-one-text', text: 'select 1 as one' });

    // Holds the connection: in a larger pool only the one that prepared the name refuses another text.
    const clash = database().transaction(async (handle) => {
      await handle.query({ name: 'conformance-one-text', text: 'select 1 as one' });
      await handle.query({ name: 'conformance-one-text', text: 'select 2 as two' });
    });

    await expect(clash).rejects.toThrow(/conformance-one-text/);
  });

  it(`${name}: counts the rows that a statement returned or changed`, async () => {
    const created = await database().query('create table counted (id int)');
    const inserted = await database().query('insert into counted select generate_series(1, 3)');
    const updated = await database().query('update counted set id = id where id > 100');
    const deleted = await database().query('delete from counted where id > 1 returning id');
    const selected = await database().query('select id from counted');

    expect([created, inserted, updated, deleted, selected].map(({ rowCount }) => rowCount)).toEqual([0, 3, 0, 2, 1]);
    expect([created.rows, inserted.rows, selected.rows]).toEqual([[], [], [{ id: 1 }]]);
  });

  it(`${name}: runs a text of several statements, and none of it when one fails`, async () => {
    const last = await database().query('create table several (id int); insert into several values (1), (2); select id from several order by id');
    expect(last).toEqual({ rows: [{ id: 1 }, { id: 2 }], rowCount: 2 });

    await expect(database().query('insert into several values (3); select no_such_column')).rejects.toMatchObject({ code: '42703' });
    expect((await database().query('select id from several order by id')).rows).toEqual([{ id: 1 }, { id: 2 }]);
  });

  it(`${name}: inserts a batch of rows from one array a column`, async () => {
    const ids = Array.from({ length: 1_000 }, (_, index) => index);
    const texts = ids.map((id) => (id % 7 === 0 ? null : `row "${id}", {}\\`));
    const instants = ids.map((id) => new Date(1_700_000_000_000 + id));
    await database().query('create table batch (id bigint, name text, at timestamptz)');

    const { rowCount } = await database().query('insert into batch select * from unnest($1::bigint[], $2::text[], $3::timestamptz[])', [ids, texts, instants]);

    const { rows } = await database().query<{ id: number; name: string | null; at: Date }>('select id, name, at from batch order by id');
    expect(rowCount).toBe(1_000);
    expect(rows).toEqual(ids.map((id, index) => ({ id, name: texts[index], at: instants[index] })));
  });

  it(`${name}: answers twenty statements sent at once, each with its own rows`, async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => database().query<{ value: number }>('select $1::int as value', [index])));

    expect(answers.map(({ rows }) => rows[0]?.value)).toEqual(Array.from({ length: 20 }, (_, index) => index));
  });

  it(
    `${name}: takes a parameter of 2 MB`,
    async () => {
      const text = 'ü'.repeat(1_000_000);
      const { rows } = await database().query<{ size: number; value: string }>('select octet_length($1::text) as size, $1::text as value', [text]);

      expect(rows[0]?.size).toBe(2_000_000);
      expect(rows[0]?.value === text).toBe(true);
    },
    LARGE_TIMEOUT_MS,
  );

  it(
    `${name}: stores and returns a text of 30 MiB`,
    async () => {
      const text = textOf(30 * MIB);
      await database().query('create table large (value text not null)');
      await database().query('insert into large values ($1)', [text]);

      const { rows } = await database().query<{ value: string }>('select value from large');

      expect(rows[0]?.value === text).toBe(true);
    },
    LARGE_TIMEOUT_MS,
  );

  for (const [size, sizeBytes, count] of [
    ['600 KiB', 600 * 1_024, 3],
    ['30 MiB', 30 * MIB, 1],
  ] as const) {
    it(
      `${name}: stores and returns json bodies of ${size}, with NUL and lone surrogates, as a commit does`,
      async () => {
        const bodies = Array.from({ length: count }, (_, index) => ({ index, text: `${textOf(sizeBytes)}a\u0000b\ud800` }));
        const table = `large_json_${sizeBytes}`;
        await database().query(`create table ${table} (body json not null)`);

        await database().query(`insert into ${table} select body::json from unnest($1::text[]) as i (body)`, [bodies.map((body) => JSON.stringify(body))]);

        const { rows } = await database().query<{ body: (typeof bodies)[number] }>(`select body from ${table}`);
        const found = [...rows].sort((one, other) => one.body.index - other.body.index);
        expect(found.map(({ body }, index) => body.text === bodies[index]?.text)).toEqual(bodies.map(() => true));
        await database().query(`drop table ${table}`);
      },
      LARGE_TIMEOUT_MS,
    );
  }
}

function textOf(characters: number): string {
  return '0123456789abcdef'.repeat(characters / 16);
}
