import { PARTITION_COUNT } from '#bus/partition.ts';

/** A host as its heartbeat shows it. */
export interface LiveHost {
  id: string;
  machineVersion: number;
}

/**
 * The partitions that a host should own: each partition goes to the host with the highest hash of both, so that a host that joins or
 * leaves moves only its own share. Only hosts of the highest version count: no older one could take what they have written.
 */
export function partitionsOf(hostId: string, hosts: readonly LiveHost[]): Set<number> {
  const newest = Math.max(...hosts.map((host) => host.machineVersion));
  const candidates = hosts.filter((host) => host.machineVersion === newest).map((host) => host.id);
  const mine = new Set<number>();
  for (let partition = 0; partition < PARTITION_COUNT; partition += 1) if (ownerOf(partition, candidates) === hostId) mine.add(partition);
  return mine;
}

function ownerOf(partition: number, hostIds: readonly string[]): string | null {
  let best: { id: string; weight: number } | null = null;
  for (const id of hostIds) {
    const weight = weightOf(id, partition);
    // Equal weights are next to impossible, but all hosts must agree even then.
    if (best === null || weight > best.weight || (weight === best.weight && id < best.id)) best = { id, weight };
  }
  return best?.id ?? null;
}

/** FNV-1a of the host's id and the partition, mixed once more (murmur3's last step): alone it orders similar ids alike for all partitions. */
function weightOf(hostId: string, partition: number): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(`${hostId}:${partition}`, 'utf8')) hash = Math.imul(hash ^ byte, 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
