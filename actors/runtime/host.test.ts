import { afterEach, expect, it, vi } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { gate } from '#bus/conformance/under-test.ts';
import { PARTITION_COUNT } from '#bus/partition.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { openMetrics } from '#shared/telemetry/open-metrics.ts';
import { seriesOf } from '#shared/telemetry/series-of.ts';
import type { PartitionClaim, StoredPartition } from '../store/port/partition-store.ts';
import type { RuntimeStore } from '../store/runtime-store.ts';
import type { CommitLoop } from './apply/commit-loop.ts';
import type { Mailbox } from './apply/mailbox.ts';
import { Host } from './host.ts';
import type { Timers } from './partitions/timers.ts';
import type { Outbox } from './publish/outbox.ts';

const WAIT = { timeout: 60_000 };
const TIMES = { beatMs: 20, dropAfterMs: 100, expiresAfterMs: 10_000, cutOffMs: 60_000, callSilenceMs: 6_000 };
const subscription = { stop: async () => {}, ready: async () => {} };

let host: Host | null = null;
afterEach(async () => {
  await host?.leave();
  host = null;
});

/** A host that owns all partitions, of a store in memory whose heartbeats wait while `pausing` is set. */
async function openHost() {
  const rows = new Map<number, StoredPartition>();
  const owned = new Map<number, Mailbox>();
  const metrics = openMetrics();
  const state = { pausing: null as ReturnType<typeof gate> | null };
  const acquire = async ({ hostId, partitions }: { hostId: string; partitions: readonly number[] }): Promise<PartitionClaim[]> =>
    partitions.flatMap((partition) => {
      const { epoch, owner } = rows.get(partition) ?? { epoch: 0, owner: null };
      if (owner !== null && owner !== hostId) return [];
      rows.set(partition, { epoch: epoch + 1, commitNo: 0, owner: hostId });
      return [{ partition, epoch: epoch + 1, owner: hostId, commitNo: 0, cursor: 0, cursorFingerprint: null }];
    });
  const store = {
    hosts: {
      beat: async () => {
        await state.pausing?.opened;
        return [];
      },
      deregister: async () => {},
    },
    partitions: { acquire, release: async () => {}, releaseOutside: async () => ({ released: [], before: new Map(rows) }) },
    runs: { unstarted: async () => [] },
    effects: {},
    timers: {},
  };
  const loop = {
    get mailboxes() {
      return [...owned.values()];
    },
    get partitions() {
      return [...owned.keys()];
    },
    own: (mailbox: Mailbox) => void owned.set(mailbox.claim.partition, mailbox),
    isOwned: (claim: PartitionClaim) => owned.get(claim.partition)?.claim === claim,
    drop: (partitions: readonly number[]) => {
      for (const partition of partitions) owned.delete(partition);
    },
    release: async (partitions: readonly number[]) => loop.drop(partitions),
    kick: () => {},
    mailboxOf: () => undefined,
  };
  const bus = {
    commands: { state: async () => ({ created: 'log-1', firstSequence: 1, lastSequence: 0 }), read: () => subscription },
    work: { createdAtMs: async () => 0 },
    notices: { publish: () => {}, subscribe: () => subscription },
    onReconnect: () => subscription,
  };
  host = new Host({
    hostId: 'host-1',
    machineVersion: 1,
    store: store as unknown as RuntimeStore,
    bus: bus as unknown as Bus,
    log: silentLog,
    loop: loop as unknown as CommitLoop,
    timers: { load: async () => {} } as unknown as Timers,
    timersOf: () => [],
    outbox: { load: async () => [] } as unknown as Outbox,
    metrics,
    times: TIMES,
  });
  await host.open();
  await vi.waitFor(() => expect(owned.size).toBe(PARTITION_COUNT), WAIT);
  /** Without a heartbeat until it has dropped its partitions, of which another host takes `taken`. */
  const pause = async (taken: readonly number[]) => {
    state.pausing = gate();
    await vi.waitFor(() => expect(owned.size).toBe(0), WAIT);
    for (const partition of taken) rows.set(partition, { epoch: 9, commitNo: 0, owner: 'host-2' });
    state.pausing.open();
    state.pausing = null;
  };
  return { metrics, owned, pause, fences: async () => seriesOf(await metrics.text(), 'switchyard_fences_total') };
}

it('counts the partitions that another host has acquired while this one wrote no heartbeat', async () => {
  const { owned, pause, fences } = await openHost();
  await pause([3, 4, 5]);

  await vi.waitFor(() => expect(owned.size).toBe(PARTITION_COUNT - 3), WAIT);
  expect(await fences()).toEqual(['3']);
});

it('counts none of those that it has dropped and acquired again', async () => {
  const { owned, pause, fences } = await openHost();
  await pause([]);

  await vi.waitFor(() => expect(owned.size).toBe(PARTITION_COUNT), WAIT);
  expect(await fences()).toEqual(['0']);
});
