import type { CommandOf } from '#bus/messages/session.ts';
import type { RunStore } from '../../store/port/run-store.ts';

/** Between two searches for runs that were accepted and not started. */
export const UNSTARTED_SEARCH_MS = 5_000;
/** A younger run's command may be in flight. */
const OVERDUE_MS = 5_000;
/** Most starts per search; the next continues. */
const MAX_STARTS = 500;

/**
 * Start commands of accepted runs that did not reach the log: the gateway died in between, or the log was lost. Not those applied, which may wait
 * for their session.
 *
 * @param ignoreAge at a take-over: without the minimum age
 */
export async function startsOfUnstarted(
  store: Pick<RunStore, 'unstarted'>,
  partitions: readonly number[],
  { ignoreAge }: { ignoreAge: boolean },
): Promise<{ partition: number; command: string }[]> {
  const runs = await store.unstarted(partitions, { minAgeMs: ignoreAge ? 0 : OVERDUE_MS, limit: MAX_STARTS }); // no fail point: reads
  return runs.map(({ id, partition, sessionId, traceparent, createdAtMs }) => {
    const command: CommandOf<'run.start'> = {
      v: 1,
      type: 'run.start',
      sessionId,
      commandId: id,
      sentAtMs: createdAtMs,
      answerTo: null,
      traceparent,
      runId: id,
    };
    return { partition, command: JSON.stringify(command) };
  });
}
