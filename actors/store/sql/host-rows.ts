import type { NamedStatement, Queryable } from '#shared/storage/database.ts';
import type { BrokerStatus } from '../../runtime/partitions/bus-contact.ts';
import { FORGET_HOST_AFTER_MS, type HostStore } from '../port/host-store.ts';

export function hostRows(database: Queryable): HostStore {
  return {
    async beat({ hostId, machineVersion, bus, isStopping, expiresAfterMs }) {
      const status = [bus?.sinceAgoMs ?? null, bus?.reachedAgoMs ?? null, bus?.logCreated ?? null];
      const parameters = [hostId, machineVersion, expiresAfterMs, FORGET_HOST_AFTER_MS, ...status, isStopping];
      const { rows } = await database.query<{ id: string; machine_v: number } & BusColumns & StopColumns>(HEARTBEAT, parameters);
      return rows.map((row) => ({
        id: row.id,
        machineVersion: row.machine_v,
        bus: brokerStatusOf(row),
        ...(row.stopping ? { stopping: { isEarlier: row.stopping_earlier } } : {}),
      }));
    },

    async deregister(hostId) {
      await database.query('delete from hosts where id = $1', [hostId]);
    },

    async ofOtherLogs({ hostId, logCreated, expiresAfterMs }) {
      const parameters = [hostId, logCreated, expiresAfterMs];
      const { rows } = await database.query<{ id: string; log_created: string; bus_seen_at: Date }>(OF_OTHER_LOGS, parameters);
      return rows.map((row) => ({ id: row.id, logCreated: row.log_created, answeredAtMs: row.bus_seen_at.getTime() }));
    },
  };
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

function brokerStatusOf({ bus_since_ago_ms: sinceAgoMs, bus_seen_ago_ms: reachedAgoMs, log_created: logCreated }: BusColumns): BrokerStatus | null {
  return sinceAgoMs === null || reachedAgoMs === null || logCreated === null ? null : { sinceAgoMs, reachedAgoMs, logCreated };
}

const HEARTBEAT: NamedStatement = {
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
};

const OF_OTHER_LOGS: NamedStatement = {
  name: 'hosts-of-other-logs',
  text: `
select id, log_created, bus_seen_at from hosts
where id <> $1 and log_created <> $2 and least(seen_at, bus_seen_at) > clock_timestamp() - make_interval(secs => $3::float8 / 1000)
order by id`,
};
