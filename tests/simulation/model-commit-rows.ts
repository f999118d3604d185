import { encodeSnapshot, MACHINE_VERSION } from '../../actors/kinds/snapshots.ts';
import type { CommitPlan } from '../../actors/runtime/apply/commit-plan.ts';
import { type Row, sqlError } from './model-rows.ts';

/** The kinds of rows in a commit. A row's `p` is its partition. */
export interface CommitRows {
  partitions: { p: number; epoch: number; commitNo: number; owner: string; cursor: number; cursorFingerprint: string | null }[];
  sessions: Row[];
  events: Row[];
  changedEvents: Row[];
  deletedEvents: Row[];
  seen: Row[];
  seenAgain: Row[];
  effects: Row[];
  closedEffects: Row[];
  publishedEffects: Row[];
  timers: Row[];
  disarmedTimers: Row[];
  deletedSessions: Row[];
  customers: Row[];
  labelledSessions: Row[];
  labels: Row[];
  runs: Row[];
  steps: Row[];
  runCalls: Row[];
  turnSteps: Row[];
  agentStates: Row[];
  deliveries: Row[];
  settledDeliveries: Row[];
  deadLetters: Row[];
}

/** A plan as its sender serialises it: later changes of the claims don't reach a commit that is in flight. */
export function rowsOf(plan: CommitPlan): CommitRows {
  const timers = [...plan.timers.values()].filter(({ isDerived }) => isDerived !== true);
  return {
    partitions: [...plan.partitions.values()].map(({ claim: { partition: p, epoch, commitNo, owner }, cursor, cursorFingerprint }) => {
      return { p, epoch, commitNo, owner, cursor, cursorFingerprint };
    }),
    ...conversationRows(plan),
    ...effectRows(plan),
    timers: timers.flatMap((timer) => {
      return timer.dueAtMs === null ? [] : [{ p: timer.partition, key: timer.key, due_at: at(timer.dueAtMs), command: timer.command }];
    }),
    disarmedTimers: timers.filter(({ dueAtMs }) => dueAtMs === null).map(({ partition: p, key }) => ({ p, key })),
    ...runRows(plan),
    ...stagedRows(plan),
    ...deliveryRows(plan),
  };
}

/** PostgreSQL refuses the character in any text. @throws as it does */
export function refuseNul(rows: CommitRows): void {
  for (const kind of Object.values(rows) as Row[][]) {
    for (const row of kind) {
      for (const value of Object.values(row)) {
        if (typeof value === 'string' && value.includes('\0')) throw sqlError('22021', 'invalid byte sequence for encoding "UTF8": 0x00');
      }
    }
  }
}

type Conversations =
  | 'sessions'
  | 'events'
  | 'changedEvents'
  | 'deletedEvents'
  | 'seen'
  | 'seenAgain'
  | 'deletedSessions'
  | 'customers'
  | 'labelledSessions'
  | 'labels';

function conversationRows(plan: CommitPlan): Pick<CommitRows, Conversations> {
  return {
    sessions: [...plan.sessions.values()].map((state) => {
      const { id, partition: p, head, record, isDeleted } = state;
      const times = { created_at: new Date(record.created_at), updated_at: new Date(record.updated_at) };
      const ends = { deleted_at: isDeleted ? new Date(record.updated_at) : null, customer_id: record.customer_id };
      return { p, id, head, machine_v: MACHINE_VERSION, snapshot: encodeSnapshot(state), record: JSON.stringify(record), ...times, ...ends };
    }),
    events: plan.events.map(({ partition: p, sessionId, event, text }) => {
      const { offset: off, id, kind, source, trace_id, created_at } = event;
      return { p, session_id: sessionId, off, id, kind, source, trace_id, body: text, created_at: new Date(created_at), deleted_at: null };
    }),
    changedEvents: plan.changedEvents.map(({ partition: p, sessionId, offset: off, text: body }) => ({ p, session_id: sessionId, off, body })),
    deletedEvents: plan.deletedEvents.map(({ partition: p, sessionId, fromOffset: from, toOffset: to, atMs }) => {
      return { p, session_id: sessionId, from, to, deleted_at: at(atMs) };
    }),
    seen: processedRows(plan, false),
    seenAgain: processedRows(plan, true),
    deletedSessions: [...plan.deletedSessions].map(([sessionId, p]) => ({ p, session_id: sessionId })),
    customers: plan.customers.map(({ partition: p, id, createdAtMs }) => {
      const fields = { name: 'Guest', external_id: null, tags: [], metadata: '{}', ephemeral: true };
      return { p, id, ...fields, created_at: at(createdAtMs), updated_at: at(createdAtMs) };
    }),
    labelledSessions: [...plan.labelledSessions.values()].map(({ partition: p, sessionId, labels }) => ({ p, session_id: sessionId, labels })),
    labels: [...plan.labelledSessions.values()].flatMap(({ partition: p, sessionId, customerId, createdAt, labels }) => {
      return [...new Set(labels)].map((label) => ({ p, session_id: sessionId, label, customer_id: customerId, created_at: new Date(createdAt) }));
    }),
  };
}

function processedRows(plan: CommitPlan, isAgain: boolean): Row[] {
  return [...plan.processed.values()].flatMap(({ partition: p, sessionId, commandId, reply, isReplaced }) => {
    return isReplaced === isAgain ? [{ p, session_id: sessionId, command_id: commandId, answer: jsonOrNull(reply) }] : [];
  });
}

function effectRows(plan: CommitPlan): Pick<CommitRows, 'effects' | 'closedEffects' | 'publishedEffects'> {
  const effects = [...plan.effects.values()].map(({ partition: p, id, sessionId, actorId, createdAtMs, kind, state, inputs }) => {
    return { p, id, session_id: sessionId, turn_id: actorId, kind, state, inputs: JSON.stringify(inputs), created_at: at(createdAtMs), unpublished: true };
  });
  return {
    effects,
    closedEffects: [...plan.effectStates].map(([id, { partition: p, state }]) => ({ p, id, state })),
    publishedEffects: [...plan.outboxDone].map(([id, p]) => ({ p, id })),
  };
}

function runRows(plan: CommitPlan): Pick<CommitRows, 'runs' | 'steps' | 'runCalls'> {
  return {
    runs: [...plan.runs.values()].map(({ partition: p, id, state, output, error, startedAtMs, completedAtMs }) => {
      const times = { started_at: atOrNull(startedAtMs), completed_at: atOrNull(completedAtMs) };
      return { p, id, state, output: jsonOrNull(output), error: jsonOrNull(error), ...times };
    }),
    steps: plan.steps.map(({ partition: p, runId, seq, sessionId, message }) => {
      return { p, run_id: runId, seq, session_id: sessionId, message: JSON.stringify(message) };
    }),
    runCalls: plan.runCalls.map(({ partition: p, runId, effectId, outcome, endedAtMs }) => {
      return { p, run_id: runId, effect_id: effectId, outcome: JSON.stringify(outcome), ended_at: at(endedAtMs) };
    }),
  };
}

function stagedRows(plan: CommitPlan): Pick<CommitRows, 'turnSteps' | 'agentStates'> {
  return {
    turnSteps: plan.turnSteps.map(({ partition: p, turnId, seq, sessionId, offset: off, body }) => {
      return { p, turn_id: turnId, seq, session_id: sessionId, off, body: JSON.stringify(body) };
    }),
    agentStates: plan.agentStates.map(({ partition: p, sessionId, seq, offset: off, state }) => {
      return { p, session_id: sessionId, seq, off, state: JSON.stringify(state) };
    }),
  };
}

function deliveryRows(plan: CommitPlan): Pick<CommitRows, 'deliveries' | 'settledDeliveries' | 'deadLetters'> {
  return {
    deliveries: [...plan.deliveries.values()].map(({ partition: p, id, url, body, traceparent, ...row }) => ({
      ...{ p, id, session_id: row.sessionId, run_id: row.runId, url, host_allowlist: JSON.stringify(row.hostAllowlist), bundle_hash: row.bundleHash },
      ...{ idempotency_key: row.idempotencyKey, trace_id: row.traceId, traceparent, body, created_at: at(row.createdAtMs) },
    })),
    settledDeliveries: [...plan.deliveryStates].map(([id, { partition: p, state }]) => ({ p, id, state })),
    deadLetters: plan.deadLetters.map(({ partition: p, id, source, reason, body }) => {
      return { p, id: withoutNul(id), source, reason: withoutNul(reason), body: withoutNul(body) };
    }),
  };
}

function withoutNul(text: string): string {
  return text.replaceAll('\0', '');
}

function at(atMs: number): Date {
  return new Date(atMs);
}

function atOrNull(atMs: number | null): Date | null {
  return atMs === null ? null : at(atMs);
}

function jsonOrNull(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value);
}
