import { failPoint } from '#shared/fail-points.ts';
import type { Queryable } from '#shared/storage/database.ts';
import type { LiveHost } from './rendezvous.ts';

/** A host's row is kept this long after its last heartbeat, for people who look. */
const FORGET_AFTER_MS = 3_600_000;

interface Beat {
  hostId: string;
  machineVersion: number;
  deadAfterMs: number;
}

/** Says that this host lives, by the database's clock, and returns all that do, itself included. */
export async function beat(database: Queryable, { hostId, machineVersion, deadAfterMs }: Beat): Promise<LiveHost[]> {
  const { rows } = await database.query<{ id: string; machine_v: number }>(
    {
      name: 'heartbeat',
      text: `
with beat as (
  insert into hosts (id, machine_v, seen_at) values ($1, $2, clock_timestamp())
  on conflict (id) do update set machine_v = excluded.machine_v, seen_at = excluded.seen_at),
gone as (delete from hosts where id <> $1 and seen_at < clock_timestamp() - make_interval(secs => $4::float8 / 1000))
select id, machine_v from hosts where id <> $1 and seen_at > clock_timestamp() - make_interval(secs => $3::float8 / 1000)`,
    },
    [hostId, machineVersion, deadAfterMs, FORGET_AFTER_MS],
  );
  failPoint('heartbeat.written');
  return [{ id: hostId, machineVersion }, ...rows.map((row) => ({ id: row.id, machineVersion: row.machine_v }))];
}

/** Says that this host is gone, so that nobody waits for it to look dead. */
export async function signOff(database: Queryable, hostId: string): Promise<void> {
  await database.query('delete from hosts where id = $1', [hostId]);
  failPoint('leave.signed-off');
}
