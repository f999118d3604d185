import type { CommandOf } from '#bus/messages/session.ts';
import type { Queryable } from '#shared/storage/database.ts';

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
export async function findUnstartedRuns(
  database: Queryable,
  partitions: readonly number[],
  { ignoreAge }: { ignoreAge: boolean },
): Promise<{ partition: number; command: string }[]> {
  // no fail point: reads
  const { rows } = await database.query<{ id: string; p: number; session_id: string; traceparent: string | null; created_at: Date }>(SELECT, [
    partitions,
    ignoreAge ? 0 : OVERDUE_MS,
    MAX_STARTS,
  ]);
  return rows.map((row) => {
    const command: CommandOf<'run.start'> = {
      v: 1,
      type: 'run.start',
      sessionId: row.session_id,
      commandId: row.id,
      sentAtMs: row.created_at.getTime(),
      answerTo: null,
      traceparent: row.traceparent,
      runId: row.id,
    };
    return { partition: row.p, command: JSON.stringify(command) };
  });
}

const SELECT = {
  name: 'lost-starts',
  text: `select id, p, session_id, traceparent, created_at from runs
    where state = 'accepted' and p = any($1::int[]) and created_at <= now() - make_interval(secs => $2::float8 / 1000)
      and not exists (select 1 from seen where seen.session_id = runs.session_id and seen.command_id = runs.id)
    order by created_at limit $3`,
};
