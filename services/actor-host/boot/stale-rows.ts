import type { Bus } from '#bus/bus.ts';
import type { CommandOf } from '#bus/messages/session.ts';
import { partitionOf } from '#bus/partition.ts';
import type { Clock } from '#shared/clock.ts';
import type { Database } from '#shared/storage/database.ts';

/** Rows that one batch looks at or takes away. */
const BATCH_ROWS = 500;
/** A session's answers are as many as its commands, so those of a batch of sessions are taken away in pieces. */
const PROCESSED_ROWS = 5_000;
/** Of a table that has no index by age: pages that one batch looks at, each of which holds some twenty rows. */
const BATCH_PAGES = 64;
/** What is younger is about to be seen to by its owner, who has timers for it. */
const GRACE = `interval '1 minute'`;

export interface StaleRowsDeps {
  bus: Pick<Bus, 'commands' | 'hasCapacity'>;
  database: Database;
  clock: Clock;
  /** Of this sweep: what it asks for is not taken for a repeat of what an earlier one asked for. */
  sweepId: string;
  retentionMs: number;
  signal: AbortSignal;
}

interface Batch {
  /** Rows taken away, or commands sent. */
  count: number;
  isLast: boolean;
}

/** One kind of what is stale; each call does the next batch. */
export interface StaleKind {
  name: 'overdue_runs' | 'orphaned_sessions' | 'old_runs' | 'old_tombstones' | 'old_effects' | 'old_dead_letters';
  next(): Promise<Batch>;
}

/** In this order: what the first two ask for is gone by the next sweep, and keeps until then the rows that lead to it. */
export function staleKinds(deps: StaleRowsDeps): StaleKind[] {
  return [
    { name: 'overdue_runs', next: overdueRuns(deps) },
    { name: 'orphaned_sessions', next: orphanedSessions(deps) },
    { name: 'old_runs', next: () => oldRuns(deps) },
    { name: 'old_tombstones', next: () => oldTombstones(deps) },
    { name: 'old_effects', next: oldEffects(deps) },
    { name: 'old_dead_letters', next: () => oldDeadLetters(deps) },
  ];
}

/**
 * Runs past their hard deadline that are not settled. Each has a timer, so there are none unless something was lost. Their rows are the
 * owner's, as the callback that follows is: it is told that their time is over, and a run that has settled meanwhile stays as it is.
 */
function overdueRuns(deps: StaleRowsDeps): StaleKind['next'] {
  let after = '';
  return async () => {
    if (!deps.bus.hasCapacity()) return { count: 0, isLast: false };
    const { rows } = await deps.database.query<{ id: string; session_id: string; traceparent: string | null }>(
      `select id, session_id, traceparent from runs
       where state in ('accepted', 'running') and expires_at < now() - ${GRACE} and id > $1 order by id limit $2`,
      [after, BATCH_ROWS],
    );
    for (const { id, session_id: sessionId, traceparent } of rows) {
      const commandId = `${id}-deadline-${deps.sweepId}`;
      await send(deps, { ...headerOf(deps, sessionId, commandId), traceparent, type: 'run.deadline', turnId: id });
    }
    after = rows.at(-1)?.id ?? after;
    return { count: rows.length, isLast: rows.length < BATCH_ROWS };
  };
}

/**
 * Sessions of ephemeral runs that are settled, with all that was to be delivered, and still live: they go with the report of the last
 * delivery, unless that was lost. Only an owner deletes a session. One in which something is in progress, be it the run of another
 * caller, is left alone, also when it begins before the owner hears of the deletion.
 *
 * There is no index of such sessions, since each commit would pay for it: all runs are looked at, some at a time.
 */
function orphanedSessions(deps: StaleRowsDeps): StaleKind['next'] {
  let after = '';
  return async () => {
    if (!deps.bus.hasCapacity()) return { count: 0, isLast: false };
    const { rows } = await deps.database.query<{ id: string; session_id: string; is_orphaned: boolean }>(SELECT_ORPHANED, [after, BATCH_ROWS]);
    const orphaned = rows.filter((row) => row.is_orphaned);
    for (const { session_id: sessionId } of orphaned) {
      await send(deps, { ...headerOf(deps, sessionId, `${sessionId}-delete-${deps.sweepId}`), type: 'session.delete', unlessBusy: true });
    }
    after = rows.at(-1)?.id ?? after;
    return { count: orphaned.length, isLast: rows.length < BATCH_ROWS };
  };
}

const SELECT_ORPHANED = `
  with page as materialized (select id, session_id, ephemeral, state, completed_at from runs where id > $1 order by id limit $2)
  select page.id, page.session_id,
    page.ephemeral and page.state in ('succeeded', 'failed') and page.completed_at < now() - ${GRACE}
      and exists (select 1 from sessions where sessions.id = page.session_id and deleted_at is null and snapshot->'session'->>'value' = 'idle')
      and not exists (select 1 from runs as other where other.session_id = page.session_id and other.state in ('accepted', 'running'))
      and not exists (select 1 from deliveries where deliveries.session_id = page.session_id and deliveries.state = 'open') as is_orphaned
  from page order by page.id`;

/**
 * Runs that settled longer ago than they are kept, with what they said and heard and their callbacks. Plain rows: a run that is settled
 * is written by nobody any more, since an owner's commit changes only those that are not, and only deliveries that are open.
 * The run of an ephemeral session that still lives stays, since it is what that session is found by.
 */
async function oldRuns({ database, retentionMs }: StaleRowsDeps): Promise<Batch> {
  return database.transaction(async (handle) => {
    const { rows } = await handle.query<{ id: string; session_id: string }>(
      `select id, session_id from runs
       where created_at < now() - ${retention('$1')} and state in ('succeeded', 'failed') and completed_at < now() - ${retention('$1')}
         and not exists (select 1 from deliveries where deliveries.session_id = runs.session_id and deliveries.run_id = runs.id and deliveries.state = 'open')
         and not (runs.ephemeral and exists (select 1 from sessions where sessions.id = runs.session_id and deleted_at is null))
       order by created_at limit $2 for update skip locked`,
      [retentionMs, BATCH_ROWS],
    );
    const ids = rows.map((row) => row.id);
    await handle.query('delete from steps where run_id = any($1::text[])', [ids]);
    await handle.query('delete from run_calls where run_id = any($1::text[])', [ids]);
    await handle.query('delete from deliveries where session_id = any($1::text[]) and run_id = any($2::text[])', [
      [...new Set(rows.map((row) => row.session_id))],
      ids,
    ]);
    await handle.query('delete from runs where id = any($1::text[])', [ids]);
    return { count: ids.length, isLast: ids.length < BATCH_ROWS };
  });
}

/**
 * What deleted sessions have left: their row, and the answers to their commands, which go first. Plain rows: an owner writes them only
 * when yet another command comes for such a session, and none is on its way for so long. If one is sent anew, it finds no session,
 * which is what the tombstone would have told it; an owner that still has the tombstone in memory puts it back as it was, and a later
 * sweep takes it.
 */
async function oldTombstones({ database, retentionMs, signal }: StaleRowsDeps): Promise<Batch> {
  const { rows } = await database.query<{ id: string }>(
    `select id from sessions where deleted_at < now() - ${retention('$1')}
       and not exists (select 1 from deliveries where deliveries.session_id = sessions.id and deliveries.state = 'open')
       and not exists (select 1 from runs where runs.session_id = sessions.id and runs.state in ('accepted', 'running'))
     order by deleted_at limit $2`,
    [retentionMs, BATCH_ROWS],
  );
  const ids = rows.map((row) => row.id);
  for (let deleted = PROCESSED_ROWS; deleted === PROCESSED_ROWS; ) {
    signal.throwIfAborted();
    deleted = (await database.query(DELETE_PROCESSED, [ids, PROCESSED_ROWS])).rowCount;
  }
  await database.query(`delete from sessions where id = any($1::text[]) and deleted_at < now() - ${retention('$2')}`, [ids, retentionMs]);
  return { count: ids.length, isLast: ids.length < BATCH_ROWS };
}

const DELETE_PROCESSED = `
  delete from seen where (session_id, command_id) in (select session_id, command_id from seen where session_id = any($1::text[]) limit $2)`;

/**
 * What actors have waited for and wait for no more. Plain rows: an owner changes only those that are open. Whoever still asks about one learns
 * that there is none, which is as much as that nobody waits for it; so those of a run or a delivery that goes on stay.
 *
 * There is no index by age, since each commit would pay for it: the table is looked through once, some of its pages at a time.
 */
function oldEffects({ database, retentionMs }: StaleRowsDeps): StaleKind['next'] {
  let page = 0;
  return async () => {
    const from = page;
    page += BATCH_PAGES;
    const { rowCount } = await database.query(DELETE_OLD_EFFECTS, [`(${from},0)`, `(${page},0)`, retentionMs]);
    const { rows } = await database.query<{ pages: number }>(`select (pg_relation_size('effects') / current_setting('block_size')::int)::int as pages`);
    return { count: rowCount, isLast: page >= (rows[0]?.pages ?? 0) };
  };
}

const DELETE_OLD_EFFECTS = `
  delete from effects where ctid >= $1::tid and ctid < $2::tid and state <> 'open' and created_at < now() - ${retention('$3')}
    and not exists (select 1 from runs where runs.id = effects.turn_id and runs.state in ('accepted', 'running'))
    and not exists (select 1 from deliveries where deliveries.id = effects.turn_id and deliveries.state = 'open')`;

/** Nobody changes a dead letter; who replays one removes it. There are few, so they have no index by age. */
async function oldDeadLetters({ database, retentionMs }: StaleRowsDeps): Promise<Batch> {
  const { rowCount } = await database.query(
    `delete from dead_letters where ctid = any(array(select ctid from dead_letters where created_at < now() - ${retention('$1')} limit $2))`,
    [retentionMs, BATCH_ROWS],
  );
  return { count: rowCount, isLast: rowCount < BATCH_ROWS };
}

/** By the database's clock: hosts' clocks may differ. */
function retention(parameter: string): string {
  return `make_interval(secs => ${parameter}::float8 / 1000)`;
}

function headerOf({ clock }: StaleRowsDeps, sessionId: string, commandId: string) {
  return { v: 1 as const, sessionId, commandId, sentAtMs: clock.nowMs(), answerTo: null, traceparent: null };
}

/** One after the other: nothing waits for them, and what customers send comes in between. */
async function send({ bus, signal }: StaleRowsDeps, command: CommandOf<'run.deadline' | 'session.delete'>): Promise<void> {
  signal.throwIfAborted();
  await bus.commands.append(partitionOf(command.sessionId), command.commandId, JSON.stringify(command));
}
