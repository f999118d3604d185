import type { NamedStatement, Queryable } from '#shared/storage/database.ts';
import type { PartitionStore } from '../port/partition-store.ts';

export function partitionRows(database: Queryable): PartitionStore {
  return {
    async initialise(count) {
      await database.query(`insert into meta (key, value) values ('partition_count', $1) on conflict (key) do nothing`, [String(count)]);
      const { rows } = await database.query<{ value: string }>(`select value from meta where key = 'partition_count'`);
      const stored = Number(rows[0]?.value);
      if (stored === count) await database.query(`insert into parts (p) select generate_series(0, $1::int) on conflict (p) do nothing`, [count - 1]);
      return stored;
    },

    async acquire({ hostId, machineVersion, logCreated, partitions, expiresAfterMs }) {
      const parameters = [hostId, machineVersion, logCreated, partitions, expiresAfterMs];
      const { rows } = await database.query<{ p: number; epoch: number; commit_no: number; cursor: number; cursor_msg: string | null }>(ACQUIRE, parameters);
      return rows.map((row) => ({
        partition: row.p,
        epoch: row.epoch,
        owner: hostId,
        commitNo: row.commit_no,
        cursor: row.cursor,
        cursorFingerprint: row.cursor_msg,
      }));
    },

    async release(claims) {
      await database.query(RELEASE, [claims.map((claim) => claim.partition), claims.map((claim) => claim.epoch), claims.map((claim) => claim.owner)]);
    },

    async releaseOutside(hostId, retain) {
      const { rows } = await database.query<Place & { is_released: boolean }>(RELEASE_OUTSIDE, [hostId, [...retain]]);
      const released = rows.filter((row) => row.is_released).map((row) => row.p);
      return { released, before: new Map(rows.map(storedPartition)) };
    },

    async read(partitions) {
      const { rows } = await database.query<Place>('select p, epoch, commit_no, owner from parts where p = any($1::int[])', [partitions]);
      return new Map(rows.map(storedPartition));
    },

    async lowestCursor() {
      const { rows } = await database.query<{ cursor: number; cursor_msg: string | null }>('select cursor, cursor_msg from parts order by cursor limit 1');
      return rows[0] === undefined ? null : { sequence: rows[0].cursor, fingerprint: rows[0].cursor_msg };
    },
  };
}

interface Place {
  p: number;
  epoch: number;
  commit_no: number;
  owner: string | null;
}

function storedPartition({ p, epoch, commit_no: commitNo, owner }: Place) {
  return [p, { epoch, commitNo, owner }] as const;
}

// Locks in the order of commits, against deadlocks between hosts.
const ACQUIRE: NamedStatement = {
  name: 'take-partitions',
  text: `
with free as materialized (
  select parts.p from parts
  where parts.p = any($4::int[]) and parts.machine_v <= $2
    and (parts.owner is null or parts.owner = $1 or not exists (
      select 1 from hosts where hosts.id = parts.owner and hosts.seen_at > clock_timestamp() - make_interval(secs => $5::float8 / 1000)))
  order by parts.p for update of parts)
update parts set epoch = parts.epoch + 1, owner = $1, machine_v = $2,
  cursor = case when log_created is not distinct from $3 then parts.cursor else 0 end,
  cursor_msg = case when log_created is not distinct from $3 then parts.cursor_msg end,
  log_created = $3
from free where parts.p = free.p
returning parts.p, parts.epoch, parts.commit_no, parts.cursor, parts.cursor_msg`,
};

const RELEASE = `
with ours as materialized (
  select parts.p from parts join unnest($1::int[], $2::bigint[], $3::text[]) as i (p, epoch, owner)
    on parts.p = i.p and parts.epoch = i.epoch and parts.owner = i.owner order by parts.p for update of parts)
update parts set owner = null from ours where parts.p = ours.p`;

// `select` sees the rows before the update.
const RELEASE_OUTSIDE: NamedStatement = {
  name: 'release-outside',
  text: `
with others as materialized (
  select parts.p from parts where parts.owner = $1 and parts.p <> all($2::int[]) order by parts.p for update of parts),
released as (
  update parts set owner = null from others where parts.p = others.p returning parts.p)
select parts.p, parts.epoch, parts.commit_no, parts.owner, released.p is not null as is_released
from parts left join released on released.p = parts.p`,
};
