import { PARTITION_COUNT } from '#bus/partition.ts';
import type { BrokerStatus } from './bus-contact.ts';

/** A host as its heartbeat shows it. */
export interface LiveHost {
  id: string;
  machineVersion: number;
  /** Null: an earlier release that does not report it. */
  bus: BrokerStatus | null;
  /** Absent unless stopping. `isEarlier`: it began to stop before the reading host. */
  stopping?: { isEarlier: boolean };
}

export interface BusTimes {
  /** A host with an older last reply may have lost the bus. */
  freshMs: number;
  /** A host is cut off after this long without replies, while another had them without a gap. */
  cutOffMs: number;
}

export interface Share {
  own: ReadonlySet<number>;
  /** Not to be released: its own, and those of a next owner that has no bus at the moment. */
  retain: ReadonlySet<number>;
}

/**
 * Rendezvous hashing: each partition goes to the host with the highest hash of both, so a joining or leaving host moves only its own share. Only
 * hosts of the highest machine version count: older ones can't acquire what these wrote. The share of a host that is cut off goes to hosts with the
 * broker; if none has it, nothing moves.
 */
export function shareOf(hostId: string, hosts: readonly LiveHost[], times: BusTimes): Share {
  const newest = Math.max(...hosts.map((host) => host.machineVersion));
  const candidates = hosts.filter((host) => host.machineVersion === newest);
  const isSilent = ({ bus }: LiveHost) => bus !== null && bus.reachedAgoMs > times.freshMs;
  const cutOff = new Set(candidates.filter((host) => isCutOff(host, candidates, times)).map(({ id }) => id));
  const withBus = candidates.filter((host) => host.bus !== null && !isSilent(host) && !cutOff.has(host.id));
  const own = new Set<number>();
  const retain = new Set<number>();
  for (let partition = 0; partition < PARTITION_COUNT; partition += 1) {
    const first = winnerOf(partition, candidates);
    const owner = first !== null && cutOff.has(first.id) ? (winnerOf(partition, withBus) ?? first) : first;
    if (owner?.id === hostId) own.add(partition);
    if (owner === null || owner.id === hostId || isSilent(owner)) retain.add(partition);
  }
  return { own, retain };
}

/**
 * Counts only time in which another host had replies without a gap: after an outage all were silent for long, and the first to reconnect must not
 * acquire everything.
 */
function isCutOff({ bus }: LiveHost, hosts: readonly LiveHost[], { cutOffMs }: BusTimes): boolean {
  if (bus === null) return false;
  return hosts.some((other) => other.bus !== null && Math.min(bus.reachedAgoMs, other.bus.sinceAgoMs) - other.bus.reachedAgoMs >= cutOffMs);
}

function winnerOf(partition: number, hosts: readonly LiveHost[]): LiveHost | null {
  let best: { host: LiveHost; weight: number } | null = null;
  for (const host of hosts) {
    const weight = weightOf(host.id, partition);
    // A tie is unlikely, but all hosts must agree on it.
    if (best === null || weight > best.weight || (weight === best.weight && host.id < best.host.id)) best = { host, weight };
  }
  return best?.host ?? null;
}

/** FNV-1a, then murmur3's finalizer: FNV-1a alone orders similar ids alike for all partitions. */
function weightOf(hostId: string, partition: number): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(`${hostId}:${partition}`, 'utf8')) hash = Math.imul(hash ^ byte, 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
