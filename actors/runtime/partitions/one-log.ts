import type { CommandLog } from '#bus/bus.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { HostOfOtherLog, HostStore } from '../../store/port/host-store.ts';
import { hostTimes } from '../host-times.ts';
import type { LiveHost } from './rendezvous.ts';

/** On top of a heartbeat's expiry: dead hosts have expired, and hosts with a replaced log have reported the new one. */
const MARGIN_MS = 1_000;
const LOOK_AGAIN_MS = 500;
/** Hosts ask their broker every second, so replies over this time confirm their log. */
const CERTAIN_AFTER_MS = 2_000;

interface OneLogDeps {
  hosts: Pick<HostStore, 'ofOtherLogs'>;
  commands: Pick<CommandLog, 'state'>;
  /** Set when this process is a host. */
  hostId?: string;
  expiresAfterMs?: number;
}

/**
 * Compares this process's command log with that of the live hosts: with two brokers on one database, commands on one are never read by owners on
 * the other. Ignores hosts without a reply of their broker or without a reported log.
 *
 * @throws `service.other_log`, naming both logs and the hosts, once they had further replies or outlived a dead host's expiry
 */
export async function refuseOtherLog({ hosts, commands, hostId = '', expiresAfterMs = hostTimes.expiresAfterMs }: OneLogDeps): Promise<void> {
  const untilMs = performance.now() + expiresAfterMs + MARGIN_MS;
  const firstAnswers = new Map<string, number>();
  for (;;) {
    const { created } = await commands.state();
    const others = await hosts.ofOtherLogs({ hostId, logCreated: created, expiresAfterMs });
    if (others.length === 0) return;
    for (const { id, answeredAtMs } of others) if (!firstAnswers.has(id)) firstAnswers.set(id, answeredAtMs);
    const areCertain = others.some(({ id, answeredAtMs }) => answeredAtMs - (firstAnswers.get(id) ?? answeredAtMs) >= CERTAIN_AFTER_MS);
    if (areCertain || performance.now() >= untilMs) throw otherLog(created, others);
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
  }
}

/** On heartbeats just read: of two hosts that start at once, at least one sees the other after two heartbeats each. @throws `service.other_log` */
export function refuseOtherLogAmong(hosts: readonly LiveHost[], { hostId, expiresAfterMs }: { hostId: string; expiresAfterMs: number }): void {
  const created = hosts.find(({ id }) => id === hostId)?.bus?.logCreated;
  if (created === undefined) return;
  const others = hosts.flatMap(({ id, bus }) => (bus !== null && bus.reachedAgoMs <= expiresAfterMs && bus.logCreated !== created ? [{ id, ...bus }] : []));
  if (others.length > 0) throw otherLog(created, others);
}

function otherLog(created: string, others: readonly Pick<HostOfOtherLog, 'id' | 'logCreated'>[]): SwitchyardError {
  const names = others.map(({ id, logCreated }) => `${id} (${logCreated})`).join(', ');
  const message = `this process is connected to a broker whose command log was created at ${created}, and hosts that run on the same database have another log: ${names}. One database takes one broker: check NATS_URL, or stop those hosts first`;
  return new SwitchyardError('service.other_log', message, { details: { created, hosts: others.map(({ id }) => id) } });
}
