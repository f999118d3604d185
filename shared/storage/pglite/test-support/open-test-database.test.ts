import { expect, it } from 'vitest';
import { loadEmptyEngine, openTestDatabase } from './open-test-database.ts';
import { schemaOf } from './template-state.ts';

/** Loading the template, more than once, on a busy machine. */
const TIMEOUT_MS = 240_000;

const ROWS = `select (select count(*)::int from schema_migrations) as migrations, (select required_from from command_tags) as tags_from,
  (select count(*)::int from sessions) as sessions, to_regclass('kept') as kept, current_setting('work_mem') as work_mem`;

/** Of the engine behind a database: all that restarts with it. */
const STARTED = `select pg_postmaster_start_time()::text as at`;

it(
  'a database that was closed is used again, without what its test changed',
  async () => {
    const first = await openTestDatabase();
    const before = (await first.query(ROWS)).rows;
    const started = (await first.query(STARTED)).rows;
    await first.query(
      `insert into sessions (id, p, head, machine_v, snapshot, record, created_at, updated_at) values ('a', 0, 0, 1, '{}', '{}', now(), now())`,
    );
    await first.query('create table kept (id int)');
    await first.query("set work_mem = '1MB'");
    await first.query({ name: 'named', text: 'select 1 as one' });
    await first.query('delete from schema_migrations');
    await first.query('delete from command_tags');
    await first.close();

    const second = await openTestDatabase();

    expect((await second.query(STARTED)).rows).toEqual(started);
    expect((await second.query(ROWS)).rows).toEqual(before);
    expect((await second.query({ name: 'named', text: 'select 2 as two' })).rows).toEqual([{ two: 2 }]);
    await second.close();
  },
  TIMEOUT_MS,
);

it(
  'a database whose schema a test changed is not used again',
  async () => {
    const first = await openTestDatabase();
    const started = (await first.query(STARTED)).rows;
    await first.query('alter table sessions add column more int');
    await first.close();

    const second = await openTestDatabase();

    expect((await second.query(STARTED)).rows).not.toEqual(started);
    await expect(second.query('select more from sessions')).rejects.toThrow();
    await second.close();
  },
  TIMEOUT_MS,
);

it(
  'every change of a schema is noticed, and a table that was emptied is none',
  async () => {
    const engine = await loadEmptyEngine();
    await engine.exec('create table one (id int default 1, note text); create function two() returns int language sql as $$ select 2 $$');
    const before = await schemaOf(engine);
    for (const change of [
      ...['alter table one add column more int', 'alter table one drop column note', 'alter table one rename column note to text'],
      ...['alter table one alter column id set default 2', 'alter table one alter column id type bigint', 'alter table one alter column id set not null'],
      ...[
        'alter table one add check (id > 0)',
        'create index on one (id)',
        'alter table one rename to another',
        'drop table one',
        'create view three as select 1',
      ],
      ...['create or replace function two() returns int language sql as $$ select 3 $$', 'drop function two()', 'create schema four', 'create sequence five'],
      ...['create role six', "alter role current_user set work_mem = '1MB'", 'alter table one enable row level security; create policy seven on one'],
      'create trigger eight before update on one for each row execute function suppress_redundant_updates_trigger()',
    ]) {
      await engine.exec(`begin; ${change}`);
      expect(await schemaOf(engine), change).not.toBe(before);
      await engine.exec('rollback');
    }
    await engine.exec('insert into one default values; truncate one restart identity');

    expect(await schemaOf(engine)).toBe(before);
    await engine.close();
  },
  TIMEOUT_MS,
);
