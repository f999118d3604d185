import type { NamedStatement } from '#shared/storage/database.ts';

/** $1 generation ids, $2 records, one a line, $3 how long they are valid in ms */
export const WRITE_INTERIM: NamedStatement = {
  name: 'interim-write',
  text: `insert into interim_records (generation_id, record, until)
    select generation_id, record::json, now() + make_interval(secs => $3::float8 / 1000) from unnest($1::text[], string_to_array($2::text, E'\\n')) as given (generation_id, record)
    order by generation_id
    on conflict (generation_id) do update set record = excluded.record, until = excluded.until`,
};

/** $1 a generation id */
export const FIND_INTERIM: NamedStatement = {
  name: 'interim-find',
  text: 'select record::text as record from interim_records where generation_id = $1',
};

/**
 * Deletes the overdue records of calls that are in the ledger, and returns those of calls that are not. $1 epoch ms: those until before it, $2 the most
 */
export const OVERDUE_INTERIM: NamedStatement = {
  name: 'interim-overdue',
  text: `with overdue as (
    select generation_id, record::text as record from interim_records
    where until < least(now(), to_timestamp($1::float8 / 1000.0)) order by until, generation_id limit $2
  ), ended as (
    delete from interim_records using overdue, usage_ledger
    where interim_records.generation_id = overdue.generation_id and usage_ledger.generation_id = overdue.generation_id
    returning interim_records.generation_id
  )
  select generation_id, record from overdue where generation_id not in (select generation_id from ended) order by generation_id`,
};
