import { PARTITION_COUNT } from '#bus/partition.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { failPoint } from '#shared/fail-points.ts';
import type { Database, Queryable } from '#shared/storage/database.ts';

/** A host's ownership of a partition. The epoch is the fencing token: commits with an older one store nothing. */
export interface PartitionClaim {
  readonly partition: number;
  readonly epoch: number;
  readonly owner: string;
  /** Incremented by every commit on the partition. */
  commitNo: number;
  /** Sequence of the last applied command. */
  cursor: number;
  /** Of the command at the cursor (bus/position-fingerprint.ts); null when unknown. */
  cursorFingerprint: string | null;
}

/** Creates the partitions' rows at a store's first start. @throws `storage.schema_refused` for another number of partitions */
export async function initialisePartitions(database: Database): Promise<void> {
  // no fail point: initialises (3)
  await database.query(`insert into meta (key, value) values ('partition_count', $1) on conflict (key) do nothing`, [String(PARTITION_COUNT)]);
  const { rows } = await database.query<{ value: string }>(`select value from meta where key = 'partition_count'`);
  if (rows[0]?.value !== String(PARTITION_COUNT)) {
    throw new SwitchyardError('storage.schema_refused', `the store has ${rows[0]?.value} partitions, this program has ${PARTITION_COUNT}`);
  }
  await database.query(`insert into parts (p) select generate_series(0, $1::int) on conflict (p) do nothing`, [PARTITION_COUNT - 1]);
}

interface AcquireOptions {
  hostId: string;
  machineVersion: number;
  /** Identifies the current command log. */
  logCreated: string;
  partitions: readonly number[];
  /** An owner without a heartbeat for this long is dead. */
  expiresAfterMs: number;
}

/**
 * Acquires those partitions that are free, this host's already, or a dead host's, each with a new epoch, which fences a former owner at its next commit. Waits
 * for a commit in flight and returns its cursor. After a replacement of the command log the cursor is 0: processed commands make the repeats
 * harmless.
 */
export async function acquirePartitions(database: Queryable, options: AcquireOptions): Promise<PartitionClaim[]> {
  const { hostId, machineVersion, logCreated, partitions, expiresAfterMs } = options;
  const { rows } = await database.query<{ p: number; epoch: number; commit_no: number; cursor: number; cursor_msg: string | null }>(ACQUIRE, [
    hostId,
    machineVersion,
    logCreated,
    partitions,
    expiresAfterMs,
  ]);
  if (rows.length > 0) failPoint('take-over.claimed');
  return rows.map((row) => ({
    partition: row.p,
    epoch: row.epoch,
    owner: hostId,
    commitNo: row.commit_no,
    cursor: row.cursor,
    cursorFingerprint: row.cursor_msg,
  }));
}

// Locks in the order of commits, against deadlocks between hosts.
const ACQUIRE = {
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

/** After their last commit; the next owner need not wait for an expiry. */
export async function releasePartitions(database: Queryable, claims: readonly PartitionClaim[]): Promise<void> {
  await database.query(
    `with ours as materialized (
       select parts.p from parts join unnest($1::int[], $2::bigint[], $3::text[]) as i (p, epoch, owner)
         on parts.p = i.p and parts.epoch = i.epoch and parts.owner = i.owner order by parts.p for update of parts)
     update parts set owner = null from ours where parts.p = ours.p`,
    [claims.map((claim) => claim.partition), claims.map((claim) => claim.epoch), claims.map((claim) => claim.owner)],
  );
  failPoint('leave.given-back');
}

export interface PartitionRow {
  epoch: number;
  commitNo: number;
  /** Whether it named this host as owner. */
  isOurs: boolean;
}

/**
 * Releases every partition with this host in its row, except for those to retain, whatever its epoch.
 *
 * @returns also the rows of all partitions before the update
 */
export async function releaseOutside(
  database: Queryable,
  hostId: string,
  retain: ReadonlySet<number>,
): Promise<{ released: number[]; rows: ReadonlyMap<number, PartitionRow> }> {
  const { rows } = await database.query<{ p: number; epoch: number; commit_no: number; is_ours: boolean; is_released: boolean }>(RELEASE_OUTSIDE, [
    hostId,
    [...retain],
  ]);
  const released = rows.filter((row) => row.is_released).map((row) => row.p);
  if (released.length > 0) failPoint('partitions.given-back');
  return { released, rows: new Map(rows.map((row) => [row.p, { epoch: row.epoch, commitNo: row.commit_no, isOurs: row.is_ours }])) };
}

// `select` sees the rows before the update.
const RELEASE_OUTSIDE = {
  name: 'release-outside',
  text: `
with others as materialized (
  select parts.p from parts where parts.owner = $1 and parts.p <> all($2::int[]) order by parts.p for update of parts),
released as (
  update parts set owner = null from others where parts.p = others.p returning parts.p)
select parts.p, parts.epoch, parts.commit_no, coalesce(parts.owner = $1, false) as is_ours, released.p is not null as is_released
from parts left join released on released.p = parts.p`,
};
