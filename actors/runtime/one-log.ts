import type { CommandLog } from '#bus/bus.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Queryable } from '#shared/storage/database.ts';
import { hostTimes } from './host-times.ts';
import type { LiveHost } from './rendezvous.ts';

/** Beyond the life of a heartbeat: by then a host that has ended looks dead, and one whose log was replaced has said which it has now. */
const MARGIN_MS = 1_000;
const LOOK_AGAIN_MS = 500;
/** A host asks its broker every second: with answers over this long it has been told of its own log since it was first looked at. */
const CERTAIN_AFTER_MS = 2_000;

interface OneLogDeps {
  database: Queryable;
  commands: Pick<CommandLog, 'state'>;
  /** Of the process that asks, where it is a host. */
  hostId?: string;
  expiresAfterMs?: number;
}

/**
 * Compares the command log that this process has with the one that living hosts have. Two brokers on one database would split the
 * commands: what goes to the one is never read by owners that listen to the other. Hosts that have no answer of their broker, or do not
 * say which log they have, say nothing against it.
 *
 * @throws `service.other_log`, naming both logs and the hosts, once these have had further answers, or have looked alive for longer than a dead host can
 */
export async function refuseOtherLog({ database, commands, hostId = '', expiresAfterMs = hostTimes.expiresAfterMs }: OneLogDeps): Promise<void> {
  const untilMs = performance.now() + expiresAfterMs + MARGIN_MS;
  const firstAnswers = new Map<string, number>();
  for (;;) {
    const { created } = await commands.state();
    const others = await hostsOfOtherLogs(database, { hostId, created, expiresAfterMs });
    if (others.length === 0) return;
    for (const { id, answeredAtMs } of others) if (!firstAnswers.has(id)) firstAnswers.set(id, answeredAtMs);
    const areCertain = others.some(({ id, answeredAtMs }) => answeredAtMs - (firstAnswers.get(id) ?? answeredAtMs) >= CERTAIN_AFTER_MS);
    if (areCertain || performance.now() >= untilMs) throw otherLog(created, others);
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
  }
}

/** The same of heartbeats that were just read: of two hosts that start at once on two brokers, at least one sees the other once both have written two. @throws `service.other_log` */
export function refuseOtherLogAmong(hosts: readonly LiveHost[], { hostId, expiresAfterMs }: { hostId: string; expiresAfterMs: number }): void {
  const created = hosts.find(({ id }) => id === hostId)?.bus?.logCreated;
  if (created === undefined) return;
  const others = hosts.flatMap(({ id, bus }) => (bus !== null && bus.reachedAgoMs <= expiresAfterMs && bus.logCreated !== created ? [{ id, ...bus }] : []));
  if (others.length > 0) throw otherLog(created, others);
}

interface Other {
  id: string;
  logCreated: string;
}

interface OtherNow extends Other {
  /** By the database's clock. */
  answeredAtMs: number;
}

async function hostsOfOtherLogs(
  database: Queryable,
  { hostId, created, expiresAfterMs }: { hostId: string; created: string; expiresAfterMs: number },
): Promise<OtherNow[]> {
  const { rows } = await database.query<{ id: string; log_created: string; bus_seen_at: Date }>(
    {
      name: 'hosts-of-other-logs',
      text: `
select id, log_created, bus_seen_at from hosts
where id <> $1 and log_created <> $2 and least(seen_at, bus_seen_at) > clock_timestamp() - make_interval(secs => $3::float8 / 1000)
order by id`,
    },
    [hostId, created, expiresAfterMs],
  );
  return rows.map((row) => ({ id: row.id, logCreated: row.log_created, answeredAtMs: row.bus_seen_at.getTime() }));
}

function otherLog(created: string, others: readonly Other[]): SwitchyardError {
  const names = others.map(({ id, logCreated }) => `${id} (${logCreated})`).join(', ');
  const message = `this process is connected to a broker whose command log was created at ${created}, and hosts that run on the same database have another log: ${names}. One database takes one broker: check NATS_URL, or stop those hosts first`;
  return new SwitchyardError('service.other_log', message, { details: { created, hosts: others.map(({ id }) => id) } });
}
