import type { Drained } from '#shared/lifecycle/drained.ts';
import { consumeKind } from './consume-kind.ts';
import type { AnyItemKind } from './item-kind.ts';
import type { WorkDeps } from './work-deps.ts';

/**
 * Consumes the items of all kinds of a table.
 * @returns its stop accepts nothing new, then waits for the items in flight; past the limit they are nacked
 */
export function startWorker(kinds: readonly AnyItemKind[], deps: WorkDeps & { drainTimeoutMs: number }): Drained {
  const { bus, metrics, running, drainTimeoutMs } = deps;
  const consumers = kinds.map((kind) => consumeKind(kind, deps));
  const unwatch = metrics.watch('queueDepth', async () => {
    const depths = await bus.work.depths(); // no fail point: reads
    return kinds.map(({ name }) => ({ labels: { kind: name }, value: depths[name] }));
  });
  return {
    async stop(withinMs = drainTimeoutMs) {
      unwatch();
      const drainTimer = setTimeout(() => running.loseAllLeases(), withinMs);
      await Promise.all(consumers.map((consumer) => consumer.stop())); // no fail point: stops
      clearTimeout(drainTimer);
    },
  };
}
