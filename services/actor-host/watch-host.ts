import type { CommitLoop } from '#actors/runtime/apply/commit-loop.ts';
import type { Outbox } from '#actors/runtime/publish/outbox.ts';
import type { PartitionStore } from '#actors/store/port/partition-store.ts';
import type { Bus } from '#bus/bus.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';

interface Watched {
  metrics: Metrics;
  loop: CommitLoop;
  outbox: Outbox;
  bus: Bus;
  partitions: Pick<PartitionStore, 'lowestCursor'>;
}

/**
 * Registers the host's gauges, computed when read: sums over memory; for `logBehind` one bus request and 64 rows.
 * @returns unregister
 */
export function watchHost({ metrics, loop, outbox, bus, partitions }: Watched): () => void {
  const one = (value: number) => [{ labels: {}, value }];
  const unwatches = [
    metrics.watch('partitionsOwned', () => one(loop.partitions.length)),
    metrics.watch('effectsOpen', () => one(outbox.openEffects)),
    metrics.watch('commandsWaiting', () => one(loop.mailboxes.reduce((sum, { waiting }) => sum + waiting, 0))),
    metrics.watch('oldestCommandSeconds', () => one(Math.max(0, ...loop.mailboxes.map(({ oldestAgeMs }) => oldestAgeMs)) / 1_000)),
    metrics.watch('logBehind', async () => {
      const lowest = await partitions.lowestCursor();
      // Read last: a cursor that moves meanwhile makes the lag too long rather than negative.
      const { lastSequence } = await bus.commands.state();
      return one(Math.max(0, lastSequence - (lowest?.sequence ?? 0)));
    }),
  ];
  return () => {
    for (const unwatch of unwatches) unwatch();
  };
}
