import { encodeSnapshot, MACHINE_VERSION } from '../../kinds/snapshots.ts';
import type { CommitPlan } from '../../runtime/apply/commit-plan.ts';
import { listingSets } from './listing-sets.ts';
import { logChangeSets } from './log-change-sets.ts';
import { type Columns, instant, type RowSet, rowSet, withoutNul } from './row-set.ts';
import { stagedSets } from './turn-sets.ts';

type ProcessedCommand = CommitPlan['processed'] extends ReadonlyMap<string, infer Row> ? Row : never;

const processedColumns: Columns<ProcessedCommand> = {
  p: ['int', (row) => row.partition],
  session_id: ['text', (row) => row.sessionId],
  command_id: ['text', (row) => row.commandId],
  answer: ['text', (row) => (row.reply === null ? null : JSON.stringify(row.reply))],
};

/** Row kinds that each turn writes. */
export const turnSets: readonly RowSet[] = [
  rowSet(
    'session_rows',
    (plan) => [...plan.sessions.values()],
    {
      p: ['int', (row) => row.partition],
      id: ['text', (row) => row.id],
      head: ['bigint', (row) => row.head],
      machine_v: ['int', () => MACHINE_VERSION],
      snapshot: ['text', encodeSnapshot],
      record: ['text', (row) => JSON.stringify(row.record)],
      created_at: ['timestamptz', (row) => row.record.created_at],
      updated_at: ['timestamptz', (row) => row.record.updated_at],
      deleted_at: ['timestamptz', (row) => (row.isDeleted ? row.record.updated_at : null)],
      // For its index. Unchanged after the first commit, which keeps updates within their page.
      customer_id: ['text', (row) => withoutNul(row.record.customer_id)],
    },
    (from) => `
  insert into sessions (id, p, head, machine_v, snapshot, record, created_at, updated_at, deleted_at, customer_id)
  select i.id, i.p, i.head, i.machine_v, i.snapshot::json, i.record::json, i.created_at, i.updated_at, i.deleted_at, i.customer_id from ${from}
  on conflict (id) do update set head = excluded.head, machine_v = excluded.machine_v, snapshot = excluded.snapshot,
    record = excluded.record, updated_at = excluded.updated_at, deleted_at = excluded.deleted_at, customer_id = excluded.customer_id`,
  ),
  rowSet(
    'event_rows',
    (plan) => plan.events,
    {
      p: ['int', (row) => row.partition],
      session_id: ['text', (row) => row.sessionId],
      off: ['bigint', (row) => row.event.offset],
      id: ['text', (row) => row.event.id],
      kind: ['text', (row) => row.event.kind],
      source: ['text', (row) => row.event.source],
      trace_id: ['text', (row) => row.event.trace_id],
      body: ['text', (row) => row.text],
      created_at: ['timestamptz', (row) => row.event.created_at],
    },
    (from) => `
  insert into events (session_id, off, id, kind, source, trace_id, body, created_at)
  select i.session_id, i.off, i.id, i.kind, i.source, i.trace_id, i.body::json, i.created_at from ${from}`,
  ),
  rowSet(
    'seen_rows',
    (plan) => [...plan.processed.values()].filter(({ isReplaced }) => !isReplaced),
    processedColumns,
    (from) => `
  insert into seen (session_id, command_id, answer) select i.session_id, i.command_id, i.answer::json from ${from}`,
  ),
  ...effectSets(),
];

/** Row kinds of turns that match policies, follow routines or call tools, beside those. */
export const stagedTurnSets: readonly RowSet[] = [...stagedSets, ...timerSets()];

/** In the statement's order, those of turns first, and then those of some turns. All see one snapshot, none another's changes. */
export const rowSets: readonly RowSet[] = [
  ...turnSets,
  ...stagedTurnSets,
  ...deletions(),
  // Replies in place of transient refusals.
  rowSet(
    'seen_again',
    (plan) => [...plan.processed.values()].filter(({ isReplaced }) => isReplaced),
    processedColumns,
    (from) => `
  update seen set answer = i.answer::json from ${from} where seen.session_id = i.session_id and seen.command_id = i.command_id`,
  ),
  ...publishedSets(),
  ...logChangeSets,
  ...listingSets,
  ...runSets(),
  // A delivery reported dead twice, as after a lost acknowledgement, keeps its one dead letter.
  rowSet(
    'dead_letter_rows',
    (plan) => plan.deadLetters,
    {
      p: ['int', (row) => row.partition],
      id: ['text', (row) => withoutNul(row.id)],
      source: ['text', (row) => row.source],
      reason: ['text', (row) => withoutNul(row.reason)],
      body: ['text', (row) => withoutNul(row.body)],
    },
    (from) => `
  insert into dead_letters (id, p, source, reason, body, created_at) select i.id, i.p, i.source, i.reason, i.body, now() from ${from}
  where i.source <> 'delivery' or exists (select 1 from deliveries where deliveries.id = i.id and deliveries.state = 'open')`,
  ),
];

/**
 * A deleted session keeps its row, processed commands and deliveries; an ephemeral one its dead letters as well, which an operator could not see otherwise:
 * its run, whose row stays, deletes it at its end.
 */
function deletions(): RowSet[] {
  const deleted = (plan: CommitPlan) => [...plan.deletedSessions];
  const columns: Columns<[string, number]> = { p: ['int', ([, partition]) => partition], session_id: ['text', ([id]) => id] };
  return [
    rowSet(
      'event_deletions',
      deleted,
      columns,
      (from) => `
  delete from events using ${from} where events.session_id = i.session_id`,
    ),
    rowSet(
      'step_deletions',
      deleted,
      columns,
      (from) => `
  delete from steps using runs, ${from} where runs.session_id = i.session_id and steps.run_id = runs.id`,
    ),
    rowSet(
      'turn_step_deletions',
      deleted,
      columns,
      (from) => `
  delete from turn_steps using ${from} where turn_steps.session_id = i.session_id`,
    ),
    rowSet(
      'agent_state_deletions',
      deleted,
      columns,
      (from) => `
  delete from agent_states using ${from} where agent_states.session_id = i.session_id`,
    ),
    rowSet(
      'dead_letter_deletions',
      deleted,
      columns,
      (from) => `
  delete from dead_letters using ${from} where dead_letters.session_id = i.session_id and dead_letters.p = i.p
    and not exists (select 1 from runs where runs.session_id = i.session_id and runs.ephemeral)`,
    ),
    rowSet(
      'customer_deletions',
      deleted,
      columns,
      // A row that a gateway changes at the moment is left to the sweep: a commit waits for no other process.
      (from) => `
  delete from customers where id in (
    select customers.id from customers join runs on runs.customer_id = customers.id and runs.ephemeral join ${from} on runs.session_id = i.session_id
    where customers.ephemeral for update of customers skip locked)`,
    ),
  ];
}

function effectSets(): RowSet[] {
  return [
    rowSet(
      'effect_rows',
      (plan) => [...plan.effects.values()],
      {
        p: ['int', (row) => row.partition],
        id: ['text', (row) => row.id],
        session_id: ['text', (row) => row.sessionId],
        turn_id: ['text', (row) => row.actorId],
        kind: ['text', (row) => row.kind],
        state: ['text', (row) => row.state],
        inputs: ['text', (row) => JSON.stringify(row.inputs)],
        created_at: ['timestamptz', (row) => instant(row.createdAtMs)],
      },
      (from) => `
  insert into effects (id, p, session_id, turn_id, kind, state, inputs, created_at, unpublished)
  select i.id, i.p, i.session_id, i.turn_id, i.kind, i.state, i.inputs::json, i.created_at, true from ${from}`,
    ),
    rowSet(
      'effect_states',
      (plan) => [...plan.effectStates],
      { p: ['int', ([, row]) => row.partition], id: ['text', ([id]) => id], state: ['text', ([, row]) => row.state] },
      (from) => `
  update effects set state = i.state from ${from} where effects.id = i.id and effects.p = i.p and effects.state = 'open'`,
    ),
  ];
}

/** By a commit within half a second of the publish, where the effect is still open. */
function publishedSets(): RowSet[] {
  const published = (plan: CommitPlan) => [...plan.outboxDone];
  const columns: Columns<[string, number]> = { p: ['int', ([, partition]) => partition], id: ['text', ([id]) => id] };
  return [
    rowSet(
      'published_effects',
      published,
      columns,
      (from) => `
  update effects set unpublished = false from ${from} where effects.id = i.id and effects.p = i.p and effects.state = 'open'`,
    ),
    // Of releases before.
    rowSet(
      'outbox_done',
      published,
      columns,
      (from) => `
  delete from outbox using ${from} where outbox.p = i.p and outbox.id = i.id`,
    ),
  ];
}

function timerSets(): RowSet[] {
  return [
    rowSet(
      'timer_rows',
      (plan) => [...plan.timers.values()].flatMap((timer) => (timer.dueAtMs === null || timer.isDerived === true ? [] : [timer])),
      {
        p: ['int', (row) => row.partition],
        key: ['text', (row) => row.key],
        due_at: ['timestamptz', (row) => instant(row.dueAtMs)],
        command: ['text', (row) => row.command],
      },
      (from) => `
  insert into timers (p, key, due_at, command) select i.p, i.key, i.due_at, i.command::json from ${from}
  on conflict (p, key) do update set due_at = excluded.due_at, command = excluded.command`,
    ),
    rowSet(
      'timer_done',
      (plan) => [...plan.timers.values()].filter((timer) => timer.dueAtMs === null && timer.isDerived !== true),
      { p: ['int', (row) => row.partition], key: ['text', (row) => row.key] },
      (from) => `
  delete from timers using ${from} where timers.p = i.p and timers.key = i.key`,
    ),
  ];
}

function runSets(): RowSet[] {
  return [
    rowSet(
      'run_rows',
      (plan) => [...plan.runs.values()],
      {
        p: ['int', (row) => row.partition],
        id: ['text', (row) => row.id],
        state: ['text', (row) => row.state],
        output: ['text', (row) => (row.output === null ? null : JSON.stringify(row.output))],
        error: ['text', (row) => (row.error === null ? null : JSON.stringify(row.error))],
        started_at: ['timestamptz', (row) => (row.startedAtMs === null ? null : instant(row.startedAtMs))],
        completed_at: ['timestamptz', (row) => (row.completedAtMs === null ? null : instant(row.completedAtMs))],
      },
      // A settled run never changes.
      (from) => `
  update runs set state = i.state, output = i.output::json, error = i.error::json,
    started_at = coalesce(runs.started_at, i.started_at), completed_at = i.completed_at
  from ${from} where runs.id = i.id and runs.state in ('accepted', 'running')`,
    ),
    rowSet(
      'step_rows',
      (plan) => plan.steps,
      {
        p: ['int', (row) => row.partition],
        run_id: ['text', (row) => row.runId],
        seq: ['int', (row) => row.seq],
        session_id: ['text', (row) => row.sessionId],
        message: ['text', (row) => JSON.stringify(row.message)],
      },
      (from) => `
  insert into steps (run_id, seq, session_id, message) select i.run_id, i.seq, i.session_id, i.message::json from ${from}`,
    ),
    rowSet(
      'run_call_rows',
      (plan) => plan.runCalls,
      {
        p: ['int', (row) => row.partition],
        run_id: ['text', (row) => row.runId],
        effect_id: ['text', (row) => row.effectId],
        outcome: ['text', (row) => JSON.stringify(row.outcome)],
        ended_at: ['timestamptz', (row) => instant(row.endedAtMs)],
      },
      (from) => `
  insert into run_calls (run_id, effect_id, outcome, ended_at) select i.run_id, i.effect_id, i.outcome::json, i.ended_at from ${from}`,
    ),
    rowSet(
      'delivery_rows',
      (plan) => [...plan.deliveries.values()],
      {
        p: ['int', (row) => row.partition],
        id: ['text', (row) => row.id],
        session_id: ['text', (row) => row.sessionId],
        run_id: ['text', (row) => row.runId],
        url: ['text', (row) => row.url],
        host_allowlist: ['text', (row) => JSON.stringify(row.hostAllowlist)],
        bundle_hash: ['text', (row) => row.bundleHash],
        idempotency_key: ['text', (row) => row.idempotencyKey],
        trace_id: ['text', (row) => row.traceId],
        traceparent: ['text', (row) => row.traceparent],
        body: ['text', (row) => row.body],
        created_at: ['timestamptz', (row) => instant(row.createdAtMs)],
      },
      (from) => `
  insert into deliveries (id, p, session_id, run_id, url, host_allowlist, bundle_hash, idempotency_key, trace_id, traceparent, body, state, created_at)
  select i.id, i.p, i.session_id, i.run_id, i.url, i.host_allowlist::json, i.bundle_hash, i.idempotency_key, i.trace_id, i.traceparent, i.body, 'open', i.created_at
  from ${from}`,
    ),
    rowSet(
      'delivery_states',
      (plan) => [...plan.deliveryStates],
      { p: ['int', ([, row]) => row.partition], id: ['text', ([id]) => id], state: ['text', ([, row]) => row.state] },
      (from) => `
  update deliveries set state = i.state, settled_at = now() from ${from} where deliveries.id = i.id and deliveries.state = 'open'`,
    ),
  ];
}
