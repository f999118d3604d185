import type { Bus } from '#bus/bus.ts';
import { actorFields } from '#bus/messages/actor-fields.ts';
import type { CommandOf } from '#bus/messages/session.ts';
import { partitionOf } from '#bus/partition.ts';
import type { Clock } from '#shared/clock.ts';
import type { Database } from '#shared/storage/database.ts';
import { missingCustomers, orphanedCustomers } from './stale-customers.ts';

const BATCH_ROWS = 500;
/** `seen` has a row per command, so those of one batch are deleted in pieces. */
const PROCESSED_ROWS = 5_000;
/** Pages per batch of a table without an index by age; a page holds about twenty rows. */
const BATCH_PAGES = 64;
/** Younger rows are left to their owner, which has timers for them. */
const GRACE = `interval '1 minute'`;

export interface StaleRowsDeps {
  bus: Pick<Bus, 'commands' | 'hasCapacity'>;
  database: Database;
  clock: Clock;
  /** Part of command ids: commands of two sweeps are no repeats. */
  sweepId: string;
  retentionMs: number;
  signal: AbortSignal;
}

interface Batch {
  /** Rows deleted, or commands sent. */
  count: number;
  isLast: boolean;
}

type KindName =
  | 'overdue_runs'
  | 'orphaned_sessions'
  | 'old_runs'
  | 'old_webhook_deliveries'
  | 'old_tombstones'
  | 'old_effects'
  | 'old_dead_letters'
  | 'old_first_replies'
  | 'old_evaluations'
  | 'missing_customers'
  | 'orphaned_customers';

/** Each call handles the next batch. */
export interface StaleKind {
  name: KindName;
  next(): Promise<Batch>;
}

/** The first two send commands, which take effect by the next sweep; until then the others keep the rows that lead there. */
export function staleKinds(deps: StaleRowsDeps): StaleKind[] {
  return [
    { name: 'overdue_runs', next: overdueRuns(deps) },
    { name: 'orphaned_sessions', next: orphanedSessions(deps) },
    { name: 'old_runs', next: () => oldRuns(deps) },
    { name: 'old_webhook_deliveries', next: () => oldWebhookDeliveries(deps) },
    { name: 'old_tombstones', next: () => oldTombstones(deps) },
    { name: 'old_effects', next: oldEffects(deps) },
    { name: 'old_dead_letters', next: () => oldDeadLetters(deps) },
    { name: 'old_first_replies', next: () => oldFirstReplies(deps) },
    { name: 'old_evaluations', next: () => oldEvaluations(deps) },
    { name: 'missing_customers', next: missingCustomers(deps) },
    { name: 'orphaned_customers', next: () => orphanedCustomers(deps) },
  ];
}

/**
 * Unsettled runs past their hard deadline; each had a timer, so something was lost. Only the owner writes their rows, as the callback
 * follows: it gets a `run.deadline` command, which a settled run ignores.
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
      await send(deps, { ...headerOf(deps, sessionId, commandId), traceparent, type: 'run.deadline', ...actorFields(id) });
    }
    after = rows.at(-1)?.id ?? after;
    return { count: rows.length, isLast: rows.length < BATCH_ROWS };
  };
}

/**
 * Sessions of settled ephemeral runs without an open delivery: normally the last delivery's report deletes them. Only an owner deletes a
 * session, and refuses while anything is in progress there, also a run of another caller that began meanwhile.
 *
 * Not indexed, since each commit would pay for it: all runs are scanned in batches.
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
 * Runs that settled before the retention, with their steps, calls and callbacks. Deleted directly: owners write only unsettled runs and open
 * deliveries. The run of an ephemeral session that is not deleted stays: `orphanedSessions` finds the session by it.
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

/** Deliveries to webhooks of the manifest, once all their runs are deleted: their key stands for both. */
async function oldWebhookDeliveries({ database, retentionMs }: StaleRowsDeps): Promise<Batch> {
  const { rowCount } = await database.query(
    `delete from webhook_deliveries where key = any(array(
       select d.key from webhook_deliveries d
       where d.received_at < now() - ${retention('$1')}
         and not exists (select 1 from runs where runs.routine_id = any(d.matched) and runs.idempotency_key = d.key)
       order by d.received_at limit $2))`,
    [retentionMs, BATCH_ROWS],
  );
  return { count: rowCount, isLast: rowCount < BATCH_ROWS };
}

/**
 * Tombstones of deleted sessions; their processed commands are deleted first. Deleted directly: an owner writes them only for a new command of
 * the session, and none is in flight for that long. A later command finds no session, which gives the same reply as the tombstone.
 * An owner with the tombstone in memory may store it again; a later sweep deletes it.
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
 * Closed effects. Deleted directly: owners change only open ones. A missing row means the same to a reader as a closed one, except while
 * the run or delivery goes on, so those rows stay.
 *
 * Not indexed by age, since each commit would pay for it: the table is scanned once, in batches of pages.
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

/**
 * Dead letters never change. They are few, so there is no index by age. A deletion removes those of its session: one of a deleted session was stored while
 * it was being deleted.
 */
async function oldDeadLetters({ database, retentionMs }: StaleRowsDeps): Promise<Batch> {
  const { rowCount } = await database.query(
    `delete from dead_letters where ctid = any(array(select ctid from dead_letters where created_at < now() - ${retention('$1')}
      or p is not null and exists (select 1 from sessions where sessions.id = dead_letters.session_id and sessions.deleted_at is not null)
        and not exists (select 1 from runs where runs.session_id = dead_letters.session_id and runs.ephemeral) limit $2))`,
    [retentionMs, BATCH_ROWS],
  );
  return { count: rowCount, isLast: rowCount < BATCH_ROWS };
}

/** After which an idempotency key of a gateway's write may be used again. */
async function oldFirstReplies({ database, retentionMs }: StaleRowsDeps): Promise<Batch> {
  const { rowCount } = await database.query(
    `delete from first_replies where id = any(array(select id from first_replies where created_at < now() - ${retention('$1')} order by created_at limit $2))`,
    [retentionMs, BATCH_ROWS],
  );
  return { count: rowCount, isLast: rowCount < BATCH_ROWS };
}

/** Of documents that no process has used since: one renews its own as long as it runs. Few rows: unindexed. */
async function oldEvaluations({ database, retentionMs }: StaleRowsDeps): Promise<Batch> {
  const { rowCount } = await database.query(
    `delete from evaluations where hash = any(array(select hash from evaluations where used_at < now() - ${retention('$1')} limit $2))`,
    [retentionMs, BATCH_ROWS],
  );
  return { count: rowCount, isLast: rowCount < BATCH_ROWS };
}

/** In the database's clock: hosts' clocks may differ. */
function retention(parameter: string): string {
  return `make_interval(secs => ${parameter}::float8 / 1000)`;
}

function headerOf({ clock }: StaleRowsDeps, sessionId: string, commandId: string) {
  return { v: 1 as const, sessionId, commandId, sentAtMs: clock.nowMs(), answerTo: null, traceparent: null };
}

/** Sequential, so that customers' commands come in between. */
async function send({ bus, signal }: StaleRowsDeps, command: CommandOf<'run.deadline' | 'session.delete'>): Promise<void> {
  signal.throwIfAborted();
  await bus.commands.append(partitionOf(command.sessionId), command.commandId, JSON.stringify(command));
}
