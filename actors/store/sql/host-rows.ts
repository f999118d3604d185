import { failPoint } from '#shared/fail-points.ts';
import type { Queryable } from '#shared/storage/database.ts';
import type { BrokerStatus } from '../../runtime/partitions/bus-contact.ts';
import type { LiveHost } from '../../runtime/partitions/rendezvous.ts';

/** How long the row of a host without heartbeats stays, for operators. */
const DELETE_AFTER_MS = 3_600_000;

interface Beat {
  hostId: string;
  machineVersion: number;
  bus: BrokerStatus | null;
  isStopping: boolean;
  expiresAfterMs: number;
}

/** Null: a host of the previous release, which does not report them. */
interface BusColumns {
  bus_since_ago_ms: number | null;
  bus_seen_ago_ms: number | null;
  log_created: string | null;
}

interface StopColumns {
  stopping: boolean;
  stopping_earlier: boolean;
}

/** Writes this host's heartbeat by the database's clock and returns all live hosts, itself included. */
export async function beat(database: Queryable, { hostId, machineVersion, bus, isStopping, expiresAfterMs }: Beat): Promise<LiveHost[]> {
  const { rows } = await database.query<{ id: string; machine_v: number } & BusColumns & StopColumns>(
    {
      name: 'heartbeat',
      text: `
with beat as (
  insert into hosts as mine (id, machine_v, seen_at, bus_since, bus_seen_at, log_created, stopping_since)
  values ($1, $2, clock_timestamp(), clock_timestamp() - make_interval(secs => $5::float8 / 1000),
    clock_timestamp() - make_interval(secs => $6::float8 / 1000), $7, case when $8 then clock_timestamp() end)
  on conflict (id) do update set machine_v = excluded.machine_v, seen_at = excluded.seen_at,
    bus_since = excluded.bus_since, bus_seen_at = excluded.bus_seen_at, log_created = excluded.log_created,
    stopping_since = case when $8 then coalesce(mine.stopping_since, excluded.stopping_since) end
  returning mine.stopping_since),
gone as (delete from hosts where id <> $1 and seen_at < clock_timestamp() - make_interval(secs => $4::float8 / 1000))
select hosts.id, machine_v, log_created, hosts.stopping_since is not null as stopping,
  coalesce((hosts.stopping_since, hosts.id collate "C") < (beat.stopping_since, $1 collate "C"), false) as stopping_earlier,
  (extract(epoch from clock_timestamp() - bus_since) * 1000)::float8 as bus_since_ago_ms,
  (extract(epoch from clock_timestamp() - bus_seen_at) * 1000)::float8 as bus_seen_ago_ms
from hosts cross join beat where hosts.id <> $1 and seen_at > clock_timestamp() - make_interval(secs => $3::float8 / 1000)`,
    },
    [hostId, machineVersion, expiresAfterMs, DELETE_AFTER_MS, bus?.sinceAgoMs ?? null, bus?.reachedAgoMs ?? null, bus?.logCreated ?? null, isStopping],
  );
  failPoint('heartbeat.written');
  const others = rows.map((row) => ({
    id: row.id,
    machineVersion: row.machine_v,
    bus: brokerStatusOf(row),
    ...(row.stopping ? { stopping: { isEarlier: row.stopping_earlier } } : {}),
  }));
  return [{ id: hostId, machineVersion, bus }, ...others];
}

function brokerStatusOf({ bus_since_ago_ms: sinceAgoMs, bus_seen_ago_ms: reachedAgoMs, log_created: logCreated }: BusColumns): BrokerStatus | null {
  return sinceAgoMs === null || reachedAgoMs === null || logCreated === null ? null : { sinceAgoMs, reachedAgoMs, logCreated };
}

/** So that others take over without waiting for the expiry. */
export async function deregisterHost(database: Queryable, hostId: string): Promise<void> {
  await database.query('delete from hosts where id = $1', [hostId]);
  failPoint('leave.signed-off');
}
