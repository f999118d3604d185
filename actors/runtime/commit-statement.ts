import type { NamedStatement } from '#shared/storage/database.ts';
import type { CommitPlan } from './commit-plan.ts';
import type { PartitionClaim } from './ownership.ts';
import { encodeSnapshot, MACHINE_VERSION } from './snapshots.ts';

/**
 * Everything that a host has to store, over all its partitions, in one statement (DESIGN 4).
 *
 * `mine` locks the partitions' rows in one order, so that two hosts never wait for each other in a circle, and lets through only those
 * whose epoch and commit number are what this host believes. A partition that another host has taken, or that an earlier try of this
 * very statement has advanced, drops out, and every row joined to it with it. `owned` names the partitions that were committed.
 */
export const commitStatement: NamedStatement = {
  name: 'commit',
  text: `
with mine as materialized (
  select parts.p from parts join unnest($1::int[], $2::bigint[], $3::bigint[]) as i (p, epoch, commit_no) using (p)
  where parts.epoch = i.epoch and parts.commit_no = i.commit_no
  order by parts.p for update of parts),
own as (
  update parts set commit_no = parts.commit_no + 1, cursor = i.cursor, cursor_msg = i.cursor_msg
  from mine join unnest($1::int[], $4::bigint[], $5::text[]) as i (p, cursor, cursor_msg) using (p)
  where parts.p = mine.p
  returning parts.p),
session_rows as (
  insert into sessions (id, p, head, machine_v, snapshot, record, created_at, updated_at)
  select i.id, i.p, i.head, $11::int, i.snapshot::json, i.record::json, i.created_at, i.updated_at
  from unnest($6::int[], $7::text[], $8::bigint[], $9::text[], $10::text[], $12::timestamptz[], $13::timestamptz[])
    as i (p, id, head, snapshot, record, created_at, updated_at) join own using (p)
  on conflict (id) do update set head = excluded.head, machine_v = excluded.machine_v, snapshot = excluded.snapshot,
    record = excluded.record, updated_at = excluded.updated_at),
event_rows as (
  insert into events (session_id, off, id, kind, source, trace_id, body, created_at)
  select i.session_id, i.off, i.id, i.kind, i.source, i.trace_id, i.body::json, i.created_at
  from unnest($14::int[], $15::text[], $16::bigint[], $17::text[], $18::text[], $19::text[], $20::text[], $21::text[], $22::timestamptz[])
    as i (p, session_id, off, id, kind, source, trace_id, body, created_at) join own using (p)),
seen_rows as (
  insert into seen (session_id, command_id, answer)
  select i.session_id, i.command_id, i.answer::json
  from unnest($23::int[], $24::text[], $25::text[], $26::text[]) as i (p, session_id, command_id, answer) join own using (p)),
effect_rows as (
  insert into effects (id, p, session_id, turn_id, kind, state, inputs, created_at)
  select i.id, i.p, i.session_id, i.turn_id, i.kind, i.state, i.inputs::json, i.created_at
  from unnest($27::int[], $28::text[], $29::text[], $30::text[], $31::text[], $32::text[], $33::text[], $34::timestamptz[])
    as i (p, id, session_id, turn_id, kind, state, inputs, created_at) join own using (p)),
effect_states as (
  update effects set state = i.state from unnest($35::int[], $36::text[], $37::text[]) as i (p, id, state) join own using (p)
  where effects.id = i.id and effects.p = i.p and effects.state = 'open'),
outbox_rows as (
  insert into outbox (p, id, created_at)
  select i.p, i.id, i.created_at from unnest($38::int[], $39::text[], $40::timestamptz[]) as i (p, id, created_at) join own using (p)),
outbox_done as (
  delete from outbox using unnest($41::int[], $42::text[]) as i (p, id) join own using (p) where outbox.p = i.p and outbox.id = i.id),
timer_rows as (
  insert into timers (p, key, due_at, command)
  select i.p, i.key, i.due_at, i.command::json from unnest($43::int[], $44::text[], $45::timestamptz[], $46::text[]) as i (p, key, due_at, command)
    join own using (p)
  on conflict (p, key) do update set due_at = excluded.due_at, command = excluded.command),
timer_done as (
  delete from timers using unnest($47::int[], $48::text[]) as i (p, key) join own using (p) where timers.p = i.p and timers.key = i.key),
dead_letter_rows as (
  insert into dead_letters (id, p, source, reason, body, created_at)
  select i.id, i.p, 'command', i.reason, i.body, now() from unnest($49::int[], $50::text[], $51::text[], $52::text[]) as i (p, id, reason, body)
    join own using (p))
select coalesce(array_agg(p), '{}') as owned from own`,
};

/** One array a column, in the statement's order. JSON travels as text and is cast inside. */
export function commitParameters(plan: CommitPlan, claims: ReadonlyMap<number, PartitionClaim>): unknown[] {
  const partitions = [...plan.partitions].map(([partition, { cursor, cursorMessageId }]) => {
    const claim = claims.get(partition);
    if (claim === undefined) throw new TypeError(`partition ${partition} is not ours`);
    return { ...claim, cursor, cursorMessageId };
  });
  const sessions = [...plan.sessions.values()];
  const seen = [...plan.seen.values()];
  const effects = [...plan.effects.values()];
  const open = effects.filter((effect) => effect.state === 'open');
  const states = [...plan.effectStates];
  const done = [...plan.outboxDone];
  const timers = [...plan.timers.values()];
  const armed = timers.flatMap((timer) => (timer.dueAtMs === null ? [] : [timer]));
  const disarmed = timers.filter((timer) => timer.dueAtMs === null);
  return [
    partitions.map((row) => row.partition),
    partitions.map((row) => row.epoch),
    partitions.map((row) => row.commitNo),
    partitions.map((row) => row.cursor),
    partitions.map((row) => row.cursorMessageId),
    sessions.map((row) => row.partition),
    sessions.map((row) => row.id),
    sessions.map((row) => row.head),
    sessions.map(encodeSnapshot),
    sessions.map((row) => JSON.stringify(row.record)),
    MACHINE_VERSION,
    sessions.map((row) => row.record.created_at),
    sessions.map((row) => row.record.updated_at),
    plan.events.map((row) => row.partition),
    plan.events.map((row) => row.sessionId),
    plan.events.map((row) => row.event.offset),
    plan.events.map((row) => row.event.id),
    plan.events.map((row) => row.event.kind),
    plan.events.map((row) => row.event.source),
    plan.events.map((row) => row.event.trace_id),
    plan.events.map((row) => row.text),
    plan.events.map((row) => row.event.created_at),
    seen.map((row) => row.partition),
    seen.map((row) => row.sessionId),
    seen.map((row) => row.commandId),
    seen.map((row) => (row.answer === null ? null : JSON.stringify(row.answer))),
    effects.map((row) => row.partition),
    effects.map((row) => row.id),
    effects.map((row) => row.sessionId),
    effects.map((row) => row.turnId),
    effects.map((row) => row.kind),
    effects.map((row) => row.state),
    effects.map((row) => JSON.stringify(row.inputs)),
    effects.map((row) => instant(row.createdAtMs)),
    states.map(([, row]) => row.partition),
    states.map(([id]) => id),
    states.map(([, row]) => row.state),
    open.map((row) => row.partition),
    open.map((row) => row.id),
    open.map((row) => instant(row.createdAtMs)),
    done.map(([, partition]) => partition),
    done.map(([id]) => id),
    armed.map((row) => row.partition),
    armed.map((row) => row.key),
    armed.map((row) => instant(row.dueAtMs)),
    armed.map((row) => row.command),
    disarmed.map((row) => row.partition),
    disarmed.map((row) => row.key),
    plan.deadLetters.map((row) => row.partition),
    plan.deadLetters.map((row) => row.id),
    plan.deadLetters.map((row) => row.reason),
    plan.deadLetters.map((row) => row.body),
  ];
}

function instant(atMs: number): string {
  return new Date(atMs).toISOString();
}
