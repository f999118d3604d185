import type { Log } from '#shared/telemetry/log.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';
import type { CommitPlan } from './commit-plan.ts';
import type { EndedWork } from './commit-rows.ts';

interface Watchers {
  log: Log;
  metrics: Metrics;
  /** @param epoch under which the committing host owns the partition */
  onEnded?(ended: EndedWork, epoch: number | undefined): void;
}

/** Logs, counts and traces a commit, for the partitions that are still owned. */
export function reportCommit({ after, deadLetters, partitions }: CommitPlan, stillOwned: ReadonlySet<number>, { log, metrics, onEnded }: Watchers): void {
  for (const { partition, what, fields, end } of after.milestones) {
    if (!stillOwned.has(partition)) continue;
    log.info(end === null ? fields : Object.assign({}, fields, { outcome: end.outcome, duration_ms: end.durationMs }), what);
    end?.count(metrics);
  }
  for (const ended of after.ended) if (stillOwned.has(ended.partition)) onEnded?.(ended, partitions.get(ended.partition)?.claim.epoch);
  for (const { partition, source } of deadLetters) if (stillOwned.has(partition)) metrics.add('deadLetters', { source });
}
