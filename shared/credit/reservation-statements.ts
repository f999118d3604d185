import type { NamedStatement } from '../storage/database.ts';

/** What a key has spent in the present window and reserved. @param spend a row of key_spend, by its name in the statement */
function usedOf(spend: string, period: string): string {
  return `${spend}.reserved_nano + case ${period}
          when 'daily' then case when ${spend}.day >= (now() at time zone 'utc')::date then ${spend}.day_nano else 0 end
          when 'weekly' then case when ${spend}.week >= date_trunc('week', now() at time zone 'utc')::date then ${spend}.week_nano else 0 end
          when 'monthly' then case when ${spend}.month >= date_trunc('month', now() at time zone 'utc')::date then ${spend}.month_nano else 0 end
          else ${spend}.total_nano end`;
}

/**
 * Reserves for all calls of a batch, or refuses them, in one statement. The rows of the keys are locked in the order of their ids, so that statements of
 * several processes wait for each other and never in a circle; whatever is decided is decided on locked rows, so that a limit holds between processes. Of the
 * calls of one key the cheapest come first: when one does not fit, no later one does.
 *
 * A call that has a reservation, or whose usage is in the ledger already, is repeated: nothing more is reserved. A limit with a period counts what was spent
 * in the present day, week or month (UTC); a window that begins in the future is of a clock that went back, and counts.
 *
 * The arrays stand in sub-selects, so that PostgreSQL does not know their lengths: it keeps one plan then, in place of planning each execution.
 *
 * Parameters are arrays of the same length: call ids, key ids, amounts, limits, periods ('' for none), milliseconds until the reservation lapses: by
 * the database's clock, which also decides that it has.
 * Returns for each call `reserved`; `occupied`: it would fit but for reservations; `no-capacity`; or `no-row`: the key has no row in key_spend yet.
 */
export const reserveCalls: NamedStatement = {
  name: 'reserve-calls',
  text: `
    with asked as materialized (
      select * from unnest((select $1::text[]), (select $2::text[]), (select $3::bigint[]), (select $4::bigint[]), (select $5::text[]), (select $6::bigint[]))
        with ordinality as a (call_id, key_id, amount, most, period, left_ms, number)
    ),
    locked as materialized (
      select key_id, reserved_nano, total_nano, day, day_nano, week, week_nano, month, month_nano
      from key_spend where key_id in (select key_id from asked)
      order by key_id for no key update
    ),
    known as materialized (
      select a.*, l.key_id is not null as has_row, l.reserved_nano as reserved,
        ${usedOf('l', 'a.period')} as used,
        reservation.is_known or coalesce(record.is_known, false) as is_repeated
      from asked a left join locked l on l.key_id = a.key_id
        -- Neither can be made a join, for which the plan would read the whole ledger into a hash table.
        cross join lateral (select count(*) > 0 as is_known from reservations r where r.call_id = a.call_id) reservation
        left join lateral (select generation_id = a.call_id as is_known from usage_ledger where generation_id >= a.call_id order by generation_id limit 1) record on true
    ),
    decided as materialized (
      select *, is_repeated or (has_row and used < most
        and used + sum(case when is_repeated then 0 else amount end) over (partition by key_id order by amount, number) <= most) as fits
      from known
    ),
    made as (
      insert into reservations (call_id, key_id, amount_nano, until)
      select call_id, key_id, amount, now() + make_interval(secs => left_ms::float8 / 1000) from decided where fits and not is_repeated
      on conflict (call_id) do nothing
      returning key_id, amount_nano
    ),
    counted as (
      update key_spend s set reserved_nano = s.reserved_nano + m.amount
      from (select key_id, sum(amount_nano)::bigint as amount from made group by key_id) m
      where s.key_id = m.key_id
    )
    select case
      when fits then 'reserved'
      when not has_row then 'no-row'
      when used - reserved < most and used - reserved + amount <= most then 'occupied'
      else 'no-capacity'
    end as outcome from decided order by number`,
};

/**
 * Reserves for all calls of a batch, which are of one key and under one limit, or for none: half of what `reserveCalls` costs, since nothing is decided for each
 * call (ADR 164). None when their sum exceeds the limit, when the key has no row, or when one of them is repeated.
 *
 * Parameters: key id, call ids, amounts, milliseconds until each reservation lapses, the sum of the amounts, the limit, the period ('' for none).
 * Returns in one row whether all `fits`. Fails with 23505, and reserves nothing, where a call is asked twice at the same time.
 */
export const reserveTogether: NamedStatement = {
  name: 'reserve-together',
  text: `
    with locked as materialized (
      select key_id, reserved_nano, total_nano, day, day_nano, week, week_nano, month, month_nano
      from key_spend where key_id = $1::text for no key update
    ),
    known as materialized (
      select l.key_id, ${usedOf('l', '$7::text')} as used from locked l
    ),
    fitting as materialized (
      select key_id from known where used < $6::bigint and used + $5::bigint <= $6::bigint
        -- A connection keeps its plan while the tables grow. For a list of ids, and for a single id in a ledger of some dozens of records, PostgreSQL would
        -- scan the table; for the first record in the order of ids it reads the index.
        and not exists (
          select from unnest((select $2::text[])) as a (call_id)
            cross join lateral (select count(*) > 0 as is_known from reservations r where r.call_id = a.call_id) reservation
            left join lateral (select generation_id = a.call_id as is_known from usage_ledger where generation_id >= a.call_id order by generation_id limit 1) record on true
          where reservation.is_known or record.is_known)
    ),
    made as (
      insert into reservations (call_id, key_id, amount_nano, until)
      select call_id, key_id, amount, now() + make_interval(secs => left_ms::float8 / 1000)
      from fitting, unnest((select $2::text[]), (select $3::bigint[]), (select $4::bigint[])) as a (call_id, amount, left_ms)
    ),
    counted as (
      update key_spend s set reserved_nano = s.reserved_nano + $5::bigint from fitting where s.key_id = fitting.key_id
    )
    select count(*) > 0 as fits from fitting`,
};

/** Rows for keys that have none: nothing spent. */
export const beginSpend: NamedStatement = {
  name: 'begin-spend',
  text: `
    insert into key_spend (key_id, day, week, month)
    select key_id, (now() at time zone 'utc')::date, date_trunc('week', now() at time zone 'utc')::date, date_trunc('month', now() at time zone 'utc')::date
    from unnest($1::text[]) as k (key_id) order by key_id
    on conflict (key_id) do nothing`,
};

/** Gives back what calls had reserved that came to nothing; parameters: call ids, key ids. Keys are locked first, in order, as above. */
export const releaseCalls: NamedStatement = {
  name: 'release-calls',
  text: `
    with asked as materialized (select * from unnest((select $1::text[]), (select $2::text[])) as a (call_id, key_id)),
    locked as materialized (
      select key_id from key_spend where key_id in (select key_id from asked) order by key_id for no key update
    ),
    ended as (
      delete from reservations r using asked a, (select array_agg(key_id) as keys from locked) l
      where r.call_id = a.call_id and a.key_id = any (l.keys)
      returning r.key_id, r.amount_nano
    )
    update key_spend s set reserved_nano = s.reserved_nano - e.amount
    from (select key_id, sum(amount_nano)::bigint as amount from ended group by key_id) e
    where s.key_id = e.key_id`,
};
