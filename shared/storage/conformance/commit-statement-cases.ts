import { expect, it } from 'vitest';
import type { Database, NamedStatement } from '../database.ts';

/** The tables of a commit, reduced to what fencing and the processed command key need. */
const TABLES = `
create table lab_parts (p int primary key, epoch bigint not null default 0, commit_no bigint not null default 0, cursor bigint not null default 0);
create table lab_sessions (id text primary key, p int not null, head bigint not null, snapshot json not null);
create table lab_events (session_id text, off bigint, body json not null, created_at timestamptz not null, primary key (session_id, off));
create table lab_seen (session_id text, command_id text, answer json, primary key (session_id, command_id));
create table lab_timers (p int not null, key text not null, due_at timestamptz not null, primary key (p, key));
insert into lab_parts (p) select generate_series(0, 7);`;

/** The form of the runtime's commit: lock, fence, advance, then all other rows only for the partitions that were advanced. */
const COMMIT: NamedStatement = {
  name: 'conformance-commit',
  text: `
with mine as materialized (
  select lab_parts.p from lab_parts join unnest($1::int[], $2::bigint[], $3::bigint[]) as i (p, epoch, commit_no) using (p)
  where lab_parts.epoch = i.epoch and lab_parts.commit_no = i.commit_no
  order by lab_parts.p for update of lab_parts),
own as (
  update lab_parts set commit_no = lab_parts.commit_no + 1, cursor = i.cursor
  from mine join unnest($1::int[], $4::bigint[]) as i (p, cursor) using (p)
  where lab_parts.p = mine.p
  returning lab_parts.p),
session_rows as (
  insert into lab_sessions (id, p, head, snapshot)
  select i.id, i.p, i.head, i.snapshot::json from unnest($5::int[], $6::text[], $7::bigint[], $8::text[]) as i (p, id, head, snapshot) join own using (p)
  on conflict (id) do update set head = excluded.head, snapshot = excluded.snapshot),
event_rows as (
  insert into lab_events (session_id, off, body, created_at)
  select i.session_id, i.off, i.body::json, i.created_at
  from unnest($9::int[], $10::text[], $11::bigint[], $12::text[], $13::timestamptz[]) as i (p, session_id, off, body, created_at) join own using (p)),
seen_rows as (
  insert into lab_seen (session_id, command_id, answer)
  select i.session_id, i.command_id, i.answer::json
  from unnest($14::int[], $15::text[], $16::text[], $17::text[]) as i (p, session_id, command_id, answer) join own using (p)),
timer_rows as (
  insert into lab_timers (p, key, due_at)
  select i.p, i.key, i.due_at from unnest($18::int[], $19::text[], $20::timestamptz[]) as i (p, key, due_at) join own using (p)
  on conflict (p, key) do update set due_at = excluded.due_at),
timer_done as (
  delete from lab_timers using unnest($21::int[], $22::text[]) as i (p, key) join own using (p) where lab_timers.p = i.p and lab_timers.key = i.key)
select array_agg(p order by p) as owned from own`,
};

interface Claim {
  p: number;
  epoch: number;
  commitNo: number;
}

/** One command of a session in the claim's partition: an event, a processed command, a snapshot. */
interface Command extends Claim {
  sessionId: string;
  commandId: string;
  offset: number;
  body: unknown;
}

/** The runtime's commit over many partitions in one statement behaves alike on every driver. */
export function commitStatementCases(name: string, database: () => Database): void {
  const book = () => commitBook(database());

  it(`DESIGN 4: ${name} commits a batch over two partitions, and of a fenced partition leaves no row`, async () => {
    const { commit, rowsOf, takeOver } = await book();
    await takeOver(1);

    const owned = await commit([command({ p: 0, sessionId: 'good' }), command({ p: 1, sessionId: 'fenced' })]);

    expect(owned).toEqual([0]);
    expect(await rowsOf('good')).toMatchObject({ sessions: 1, events: 1, seen: 1 });
    expect(await rowsOf('fenced')).toEqual({ sessions: 0, events: 0, seen: 0 });
  });

  it(`DESIGN 4: ${name} answers the same batch sent twice with nothing owned and nothing changed`, async () => {
    const { commit, rowsOf, commitNo } = await book();
    const batch = [command({ p: 2, sessionId: 'again' })];

    expect(await commit(batch)).toEqual([2]);
    expect(await commit(batch)).toBeNull();

    expect(await rowsOf('again')).toEqual({ sessions: 1, events: 1, seen: 1 });
    expect(await commitNo(2)).toBe(1);
  });

  it(`DESIGN 4: ${name} refuses a command that was seen before with 23505, and keeps nothing of its batch`, async () => {
    const { commit, rowsOf, commitNo } = await book();
    await commit([command({ p: 3, sessionId: 'seen', commandId: 'once' })]);

    const repeated = commit([command({ p: 4, sessionId: 'innocent' }), command({ p: 3, commitNo: 1, sessionId: 'seen', commandId: 'once', offset: 1 })]);

    await expect(repeated).rejects.toMatchObject({ code: '23505' });
    expect(await rowsOf('innocent')).toEqual({ sessions: 0, events: 0, seen: 0 });
    expect([await commitNo(3), await commitNo(4)]).toEqual([1, 0]);
  });

  it(`DESIGN 4: ${name} stores a body with NUL and lone surrogates, which must never stop a partition`, async () => {
    const { commit, bodyOf } = await book();
    const body = { text: 'a\u0000b\ud800' };

    expect(await commit([command({ p: 5, sessionId: 'hostile', body })])).toEqual([5]);

    expect(await bodyOf('hostile')).toEqual(body);
  });

  it(`DESIGN 4: ${name} commits a batch of timers alone, with the cursor where it was`, async () => {
    const { commitTimers, timers, commitNo } = await book();

    expect(await commitTimers({ p: 6, epoch: 0, commitNo: 0 }, { armed: ['kept', 'dropped'], disarmed: [] })).toEqual([6]);
    expect(await commitTimers({ p: 6, epoch: 0, commitNo: 1 }, { armed: [], disarmed: ['dropped'] })).toEqual([6]);

    expect(await timers(6)).toEqual(['kept']);
    expect(await commitNo(6)).toBe(2);
  });
}

function command(fields: Partial<Command> & Pick<Command, 'p' | 'sessionId'>): Command {
  return { epoch: 0, commitNo: 0, commandId: 'command-1', offset: 0, body: { text: 'hello' }, ...fields };
}

/** Creates the tables, and wraps the statement with its 22 arrays. */
async function commitBook(database: Database) {
  await database.query('drop table if exists lab_parts, lab_sessions, lab_events, lab_seen, lab_timers');
  await database.query(TABLES);

  const run = async (claims: Claim[], commands: Command[], timers: { p: number; armed: string[]; disarmed: string[] }) => {
    const column = <Value>(value: (row: Command) => Value) => commands.map(value);
    const { rows } = await database.query<{ owned: number[] | null }>(COMMIT, [
      ...[claims.map(({ p }) => p), claims.map(({ epoch }) => epoch), claims.map(({ commitNo }) => commitNo), claims.map(() => 10)],
      ...[column(({ p }) => p), column(({ sessionId }) => sessionId), column(({ offset }) => offset + 1), column(() => '{"v":1}')],
      ...[column(({ p }) => p), column(({ sessionId }) => sessionId), column(({ offset }) => offset), column(({ body }) => JSON.stringify(body))],
      column(() => new Date()),
      ...[column(({ p }) => p), column(({ sessionId }) => sessionId), column(({ commandId }) => commandId), column(() => null)],
      ...[timers.armed.map(() => timers.p), timers.armed, timers.armed.map(() => new Date())],
      ...[timers.disarmed.map(() => timers.p), timers.disarmed],
    ]);
    return rows[0]?.owned;
  };
  const count = async (text: string, parameter: unknown): Promise<number> => {
    const { rows } = await database.query<{ value: number }>(text, [parameter]);
    return rows[0]?.value ?? Number.NaN;
  };

  return {
    /** The committed partitions in order; null when there is none. */
    commit: (commands: Command[]) => run(commands, commands, { p: 0, armed: [], disarmed: [] }),
    commitTimers: (claim: Claim, timers: { armed: string[]; disarmed: string[] }) => run([claim], [], { p: claim.p, ...timers }),
    takeOver: (p: number) => database.query('update lab_parts set epoch = epoch + 1 where p = $1', [p]),
    commitNo: (p: number) => count('select commit_no as value from lab_parts where p = $1', p),
    rowsOf: async (sessionId: string) => ({
      sessions: await count('select count(*) as value from lab_sessions where id = $1', sessionId),
      events: await count('select count(*) as value from lab_events where session_id = $1', sessionId),
      seen: await count('select count(*) as value from lab_seen where session_id = $1', sessionId),
    }),
    bodyOf: async (sessionId: string) => {
      const { rows } = await database.query<{ body: unknown }>('select body from lab_events where session_id = $1', [sessionId]);
      return rows[0]?.body;
    },
    timers: async (p: number) => {
      const { rows } = await database.query<{ key: string }>('select key from lab_timers where p = $1 order by key', [p]);
      return rows.map(({ key }) => key);
    },
  };
}
