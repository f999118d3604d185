import { PARTITION_COUNT } from '#bus/partition.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Database } from '#shared/storage/database.ts';

/** A partition in the hands of this host. The epoch is the fencing token: whoever commits with an older one commits nothing. */
export interface PartitionClaim {
  readonly partition: number;
  readonly epoch: number;
  /** Grows by one with every commit that touches the partition. */
  commitNo: number;
  /** Sequence of the last command that is applied. */
  cursor: number;
  cursorMessageId: string | null;
}

/** Makes the partitions' rows at a store's first start, and refuses a store that was laid out for another number of them. */
export async function layPartitions(database: Database): Promise<void> {
  await database.query(`insert into meta (key, value) values ('partition_count', $1) on conflict (key) do nothing`, [String(PARTITION_COUNT)]);
  const { rows } = await database.query<{ value: string }>(`select value from meta where key = 'partition_count'`);
  if (rows[0]?.value !== String(PARTITION_COUNT)) {
    throw new SwitchyardError('storage.schema_refused', `the store has ${rows[0]?.value} partitions, this program has ${PARTITION_COUNT}`);
  }
  await database.query(`insert into parts (p) select generate_series(0, $1::int) on conflict (p) do nothing`, [PARTITION_COUNT - 1]);
}

/**
 * Takes every partition: each gets a new epoch, so that a former owner that still runs is fenced out at its next commit. The
 * statement waits for a commit in flight and returns the cursor it leaves.
 *
 * @param log the command log as it is now. A log of another creation holds none of the old sequences: reading starts anew, and the
 *   seen keys make that harmless.
 */
export async function takePartitions(database: Database, { hostId, machineVersion, logCreated }: TakeOptions): Promise<PartitionClaim[]> {
  const { rows } = await database.query<{ p: number; epoch: number; commit_no: number; cursor: number; cursor_msg: string | null }>(
    `update parts set epoch = epoch + 1, owner = $1, machine_v = $2,
       cursor = case when log_created is not distinct from $3 then cursor else 0 end,
       cursor_msg = case when log_created is not distinct from $3 then cursor_msg end,
       log_created = $3
     where machine_v <= $2 returning p, epoch, commit_no, cursor, cursor_msg`,
    [hostId, machineVersion, logCreated],
  );
  if (rows.length < PARTITION_COUNT) {
    throw new SwitchyardError('storage.schema_refused', 'the store was last written by a newer version of this program');
  }
  return rows.map((row) => ({
    partition: row.p,
    epoch: row.epoch,
    commitNo: row.commit_no,
    cursor: row.cursor,
    cursorMessageId: row.cursor_msg,
  }));
}

interface TakeOptions {
  hostId: string;
  machineVersion: number;
  logCreated: string;
}

/** Gives the partitions back after the last commit, so that whoever comes next need not wait for us to look dead. */
export async function releasePartitions(database: Database, claims: readonly PartitionClaim[]): Promise<void> {
  await database.query(`update parts set owner = null from unnest($1::int[], $2::bigint[]) as i (p, epoch) where parts.p = i.p and parts.epoch = i.epoch`, [
    claims.map((claim) => claim.partition),
    claims.map((claim) => claim.epoch),
  ]);
}
