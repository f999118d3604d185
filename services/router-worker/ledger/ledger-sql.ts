import type { NamedStatement } from '#shared/storage/database.ts';

/*
 * Locks are taken in one order by all writers of the ledger, of reservations and of spending: rows of usage_ledger by generation id, then rows of
 * key_spend by key id, then rows of reservations. So any number of writers waits, and none for each other. Each is one statement that commits by itself.
 */

/** The window of a record: the database's, for one from the future, so that a fast clock can't close a window early. */
const RECORDED_AT = `least(inserted.created_at, now()) at time zone 'UTC'`;
const TODAY = `(now() at time zone 'UTC')::date`;
const THIS_WEEK = `date_trunc('week', now() at time zone 'UTC')::date`;
const THIS_MONTH = `date_trunc('month', now() at time zone 'UTC')::date`;

/**
 * Writes records: inserts them, adds their costs to the windows of their keys, and settles the reservations of their calls, once per generation id. One
 * statement, so that no row is locked while the database waits for a client, which may be paused at any time. Weeks begin on Monday; all windows are UTC. An
 * amount of an earlier window than the row's is in the total only. A row of a future window, of a time when the clock was fast, counts as of the present one.
 *
 * Nothing is written while a key to be charged or settled has no row of spending: these keys are returned as `missing`, for `beginSpend`. A row that is
 * inserted here would be locked out of order, if another statement made it meanwhile.
 *
 * The sub-select hides the number of reservations, so that PostgreSQL keeps one plan.
 * $1 generation ids, $2 keys, $3 epoch ms, $4 models, $5 providers, $6 prompt tokens, $7 completion tokens, $8 reasoning tokens, $9 costs, $10 records, one a line,
 * $11 whether the call had a reservation
 */
export const WRITE_RECORDS: NamedStatement = {
  name: 'ledger-write-records',
  text: `with given as (
    select * from unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
      string_to_array($10::text, E'\\n'), $11::boolean[]) as i (generation_id, key_id, created_at_ms, model, provider, prompt_tokens, completion_tokens, reasoning_tokens, cost_nano, record, reserved)
  ), touched as materialized (
    select distinct key_id from given where reserved or cost_nano > 0
  ), missing as materialized (
    select key_id from touched where not exists (select from key_spend where key_spend.key_id = touched.key_id)
  ), inserted as (
    insert into usage_ledger (generation_id, key_id, created_at, model, provider, prompt_tokens, completion_tokens, reasoning_tokens, cost_nano, record)
    select generation_id, key_id, to_timestamp(created_at_ms / 1000.0), model, provider, prompt_tokens, completion_tokens, reasoning_tokens, cost_nano, record::json
    from given where not exists (select from missing) order by generation_id
    on conflict (generation_id) do nothing
    returning key_id, created_at, cost_nano
  ), locked as materialized (
    -- The count makes it wait for all records.
    select key_id from key_spend
    where key_id in (select key_id from touched) and not exists (select from missing) and (select count(*) from inserted) >= 0
    order by key_id for no key update
  ), settled as (
    delete from reservations using locked
    where reservations.key_id = locked.key_id and call_id = any((select array_agg(generation_id) from given where reserved)::text[])
    returning reservations.key_id, amount_nano
  ), freed as (
    select key_id, sum(amount_nano)::bigint as amount_nano from settled group by key_id
  ), daily as (
    select key_id, (${RECORDED_AT})::date as day, sum(cost_nano) as cost_nano from inserted where cost_nano > 0 group by 1, 2
  ), dated as (
    select key_id, cost_nano, day, date_trunc('week', day::timestamp)::date as week, date_trunc('month', day::timestamp)::date as month from daily
  ), newest as (
    select key_id, max(day) as day, max(week) as week, max(month) as month from dated group by key_id
  ), sums as (
    select dated.key_id, newest.day, newest.week, newest.month, sum(cost_nano)::bigint as total_nano,
      coalesce(sum(cost_nano) filter (where dated.day = newest.day), 0)::bigint as day_nano,
      coalesce(sum(cost_nano) filter (where dated.week = newest.week), 0)::bigint as week_nano,
      coalesce(sum(cost_nano) filter (where dated.month = newest.month), 0)::bigint as month_nano
    from dated join newest using (key_id) group by dated.key_id, newest.day, newest.week, newest.month
  ), added as (
    select key_id, coalesce(total_nano, 0) as total_nano, coalesce(day, ${TODAY}) as day, coalesce(day_nano, 0) as day_nano,
      coalesce(week, ${THIS_WEEK}) as week, coalesce(week_nano, 0) as week_nano, coalesce(month, ${THIS_MONTH}) as month, coalesce(month_nano, 0) as month_nano,
      coalesce(freed.amount_nano, 0) as freed_nano
    from locked left join sums using (key_id) left join freed using (key_id)
  ), counted as (
    update key_spend spend set
      total_nano = spend.total_nano + added.total_nano,
      ${rolled('day', TODAY)},
      ${rolled('week', THIS_WEEK)},
      ${rolled('month', THIS_MONTH)},
      reserved_nano = greatest(0, spend.reserved_nano - added.freed_nano)
    from added where spend.key_id = added.key_id
  )
  select (select count(*) from inserted)::int as inserted, (select coalesce(array_agg(key_id order by key_id), '{}') from missing) as missing`,
};

function rolled(window: 'day' | 'week' | 'month', present: string): string {
  const found = `least(spend.${window}, ${present})`;
  const amount = `${window}_nano`;
  return `${window} = greatest(${found}, added.${window}),
      ${amount} = case when added.${window} > ${found} then 0 else spend.${amount} end + case when added.${window} < ${found} then 0 else added.${amount} end`;
}

/**
 * Deletes reservations of dead calls, and gives their room back. Keys first, then their reservations: one that is settled meanwhile is not found any more.
 * $1 epoch ms: those until before it, $2 the most
 */
export const LAPSE_RESERVATIONS: NamedStatement = {
  name: 'ledger-lapse-reservations',
  text: `with dead as (
    select call_id, key_id from reservations where until < least(now(), to_timestamp($1::float8 / 1000.0)) order by until limit $2
  ), locked as (
    select key_id from key_spend where key_id in (select key_id from dead) order by key_id for update
  ), lapsed as (
    delete from reservations using locked
    where reservations.key_id = locked.key_id and reservations.call_id in (select call_id from dead)
    returning reservations.key_id, reservations.amount_nano
  ), freed as (
    select key_id, sum(amount_nano)::bigint as amount_nano, count(*)::int as reservations from lapsed group by key_id
  ), given_back as (
    update key_spend set reserved_nano = greatest(0, reserved_nano - freed.amount_nano) from freed where key_spend.key_id = freed.key_id
  )
  select key_id, amount_nano, reservations from freed`,
};
