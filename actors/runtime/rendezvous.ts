import { PARTITION_COUNT } from '#bus/partition.ts';
import type { BrokerStatus } from './bus-contact.ts';

/** A host according to its heartbeat. */
export interface LiveHost {
  id: string;
  machineVersion: number;
  /** Null: an earlier release that does not report it, or no reply of the broker yet. */
  bus: BrokerStatus | null;
  /** Absent unless it is stopping. `isEarlier`: it began to stop before the host that reads this. */
  stopping?: { isEarlier: boolean };
}

export interface BusTimes {
  /** A host whose last reply is older has no known connection to the bus. */
  freshMs: number;
  /** A host without replies for this long, in which another had them without a gap, is cut off. */
  cutOffMs: number;
}

export interface Share {
  /** Partitions that the host should own. */
  own: ReadonlySet<number>;
  /** Partitions that it does not release: its own, and those whose next owner has no bus at the moment and could not acquire them. */
  retain: ReadonlySet<number>;
}

/**
 * Rendezvous hashing: each partition goes to the host with the highest hash of both, so that a host that joins or leaves moves only its own share.
 * Only hosts of the highest machine version count: older ones could not acquire what these have written. The share of a host that is cut off from
 * the broker goes to hosts that have it; if none has, nothing moves.
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
 * Counts only time in which another host had replies without a gap: after an outage of the broker all hosts were silent for long, and the first to
 * reconnect must not acquire everything from those that reconnect a moment later.
 */
function isCutOff({ bus }: LiveHost, hosts: readonly LiveHost[], { cutOffMs }: BusTimes): boolean {
  if (bus === null) return false;
  return hosts.some((other) => other.bus !== null && Math.min(bus.reachedAgoMs, other.bus.sinceAgoMs) - other.bus.reachedAgoMs >= cutOffMs);
}

function winnerOf(partition: number, hosts: readonly LiveHost[]): LiveHost | null {
  let best: { host: LiveHost; weight: number } | null = null;
  for (const host of hosts) {
    const weight = weightOf(host.id, partition);
    // Equal weights are very unlikely, but all hosts must still agree.
    if (best === null || weight > best.weight || (weight === best.weight && host.id < best.host.id)) best = { host, weight };
  }
  return best?.host ?? null;
}

/** FNV-1a of host id and partition, then murmur3's finalizer: FNV-1a alone orders similar ids alike for all partitions. */
function weightOf(hostId: string, partition: number): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(`${hostId}:${partition}`, 'utf8')) hash = Math.imul(hash ^ byte, 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
