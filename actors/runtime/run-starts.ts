import type { CommandOf } from '#bus/messages/session.ts';
import type { Queryable } from '#shared/storage/database.ts';

/** Between two looks for runs that were accepted and whose start never came. */
export const START_LOOK_MS = 5_000;
/** A run that is younger has its command on the way. */
const OVERDUE_MS = 5_000;
/** Runs started by one look; the next goes on. */
const MAX_STARTS = 500;

/**
 * The start commands of runs that were accepted, and whose commands did not reach the log: the gateway died in between, or the log was
 * lost. A run whose start was applied, and that waits for its session, is not among them.
 *
 * @param evenFresh at a take-over: nobody else looks after them
 */
export async function lostStarts(
  database: Queryable,
  partitions: readonly number[],
  { evenFresh }: { evenFresh: boolean },
): Promise<{ partition: number; command: string }[]> {
  // no fail point: reads
  const { rows } = await database.query<{ id: string; p: number; session_id: string; traceparent: string | null; created_at: Date }>(SELECT, [
    partitions,
    evenFresh ? 0 : OVERDUE_MS,
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
