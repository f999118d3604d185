import type { HostStore } from '../../actors/store/port/host-store.ts';
import { FORGET_HOST_AFTER_MS } from '../../actors/store/port/host-store.ts';
import type { PartitionStore, StoredPartition } from '../../actors/store/port/partition-store.ts';
import type { ModelTables, Row } from './model-rows.ts';
import type { Executed } from './model-store.ts';

const FRESH_PART = { epoch: 0, commit_no: 0, cursor: 0, cursor_msg: null, log_created: null, owner: null, machine_v: 0 };

export function partitionsOf(tables: ModelTables, nowMs: () => number): Executed<PartitionStore> {
  return {
    initialise(count) {
      if (!tables.meta.has('partition_count')) tables.meta.set('partition_count', { key: 'partition_count', value: String(count) });
      const stored = Number(tables.meta.get('partition_count')?.['value']);
      if (stored === count) for (let p = 0; p < count; p += 1) if (!tables.parts.has(p)) tables.parts.set(p, { ...FRESH_PART, p });
      return stored;
    },

    acquire({ hostId, machineVersion, logCreated, partitions, expiresAfterMs }) {
      return [...partitions]
        .sort((left, right) => left - right)
        .flatMap((p) => {
          const part = tables.parts.get(p);
          if (part === undefined || (part['machine_v'] as number) > machineVersion) return [];
          const owner = part['owner'] as string | null;
          if (owner !== null && owner !== hostId && isLive(tables, owner, nowMs() - expiresAfterMs)) return [];
          if (part['log_created'] !== logCreated) Object.assign(part, { cursor: 0, cursor_msg: null });
          Object.assign(part, { epoch: (part['epoch'] as number) + 1, owner: hostId, machine_v: machineVersion, log_created: logCreated });
          const { epoch, commitNo } = storedOf(part);
          return [{ partition: p, epoch, owner: hostId, commitNo, ...cursorOf(part) }];
        });
    },

    release(claims) {
      for (const { partition, epoch, owner } of claims) {
        const part = tables.parts.get(partition);
        if (part !== undefined && part['epoch'] === epoch && part['owner'] === owner) part['owner'] = null;
      }
    },

    releaseOutside(hostId, retain) {
      const before = new Map([...tables.parts].map(([p, part]) => [p, storedOf(part)]));
      const released = [...before].filter(([p, { owner }]) => owner === hostId && !retain.has(p)).map(([p]) => p);
      for (const p of released) Object.assign(tables.parts.get(p) as Row, { owner: null });
      return { released, before };
    },

    read(partitions) {
      const found = new Map<number, StoredPartition>();
      for (const p of partitions) {
        const part = tables.parts.get(p);
        if (part !== undefined) found.set(p, storedOf(part));
      }
      return found;
    },

    lowestCursor() {
      const [lowest] = [...tables.parts.values()].sort((left, right) => (left['cursor'] as number) - (right['cursor'] as number));
      if (lowest === undefined) return null;
      const { cursor: sequence, cursorFingerprint: fingerprint } = cursorOf(lowest);
      return { sequence, fingerprint };
    },
  };
}

function storedOf(part: Row): StoredPartition {
  return { epoch: part['epoch'] as number, commitNo: part['commit_no'] as number, owner: part['owner'] as string | null };
}

function cursorOf(part: Row): { cursor: number; cursorFingerprint: string | null } {
  return { cursor: part['cursor'] as number, cursorFingerprint: part['cursor_msg'] as string | null };
}

function isLive(tables: ModelTables, hostId: string, sinceMs: number): boolean {
  const host = tables.hosts.get(hostId);
  return host !== undefined && (host['seen_at'] as Date).getTime() > sinceMs;
}

type Hosts = Executed<HostStore>;

export function hostsOf(tables: ModelTables, nowMs: () => number): Hosts {
  const others = (hostId: string, expiresAfterMs: number) =>
    [...tables.hosts.values()]
      .filter(({ id }) => id !== hostId && isLive(tables, id as string, nowMs() - expiresAfterMs))
      .sort((left, right) => String(left['id']).localeCompare(String(right['id'])));
  return {
    beat({ hostId, machineVersion, bus, isStopping, expiresAfterMs }) {
      const atMs = nowMs();
      const live = others(hostId, expiresAfterMs);
      const before = (agoMs: number | undefined) => (agoMs === undefined ? null : new Date(atMs - agoMs));
      const status = { bus_since: before(bus?.sinceAgoMs), bus_seen_at: before(bus?.reachedAgoMs), log_created: bus?.logCreated ?? null };
      const stoppingSince = isStopping ? ((tables.hosts.get(hostId)?.['stopping_since'] as Date | null | undefined) ?? new Date(atMs)) : null;
      tables.hosts.set(hostId, { id: hostId, machine_v: machineVersion, seen_at: new Date(atMs), ...status, stopping_since: stoppingSince });
      for (const { id, seen_at: seenAt } of [...tables.hosts.values()]) {
        if ((seenAt as Date).getTime() < atMs - FORGET_HOST_AFTER_MS) tables.hosts.delete(id as string);
      }
      return live.map((host) => liveHostOf(host, { hostId, stoppingSince, atMs }));
    },

    deregister(hostId) {
      tables.hosts.delete(hostId);
    },

    ofOtherLogs({ hostId, logCreated, expiresAfterMs }) {
      return others(hostId, expiresAfterMs).flatMap(({ id, log_created: other, bus_seen_at: seenAt }) => {
        const answeredAtMs = (seenAt as Date | null)?.getTime() ?? Number.NEGATIVE_INFINITY;
        if (other === null || other === logCreated || answeredAtMs <= nowMs() - expiresAfterMs) return [];
        return [{ id: id as string, logCreated: other as string, answeredAtMs }];
      });
    },
  };
}

interface Reader {
  hostId: string;
  stoppingSince: Date | null;
  atMs: number;
}

function liveHostOf(host: Row, { hostId, stoppingSince, atMs }: Reader): ReturnType<Hosts['beat']>[number] {
  const [id, since, seenAt, logCreated] = [host['id'] as string, host['bus_since'], host['bus_seen_at'], host['log_created']];
  const isKnown = since !== null && seenAt !== null && logCreated !== null;
  const agoMs = (at: unknown) => atMs - (at as Date).getTime();
  const bus = isKnown ? { sinceAgoMs: agoMs(since), reachedAgoMs: agoMs(seenAt), logCreated: logCreated as string } : null;
  const live = { id, machineVersion: host['machine_v'] as number, bus };
  const theirs = host['stopping_since'] as Date | null;
  if (theirs === null) return live;
  const aheadMs = (stoppingSince?.getTime() ?? Number.NEGATIVE_INFINITY) - theirs.getTime();
  return { ...live, stopping: { isEarlier: aheadMs > 0 || (aheadMs === 0 && id < hostId) } };
}
