import { actorFields } from '#bus/messages/actor-fields.ts';
import type { CommandOf } from '#bus/messages/session.ts';
import type { SessionRecord } from '#shared/contracts/agent/session.ts';
import { initialTransition } from '../../runtime/apply/transition.ts';
import { overdueKeyOf } from '../../tool-loop/effect-ids.ts';
import type { ActorKind, ActorState } from '../actor-kind.ts';
import { eventWebhookActor } from '../event-webhook/actor.ts';
import { endSession } from '../event-webhook/end-session.ts';
import { type Handlers, openEffect, type Plan } from '../plan.ts';
import { runActor } from '../run/actor.ts';
import { awaitRun, beginRun, failUnstarted, recordFor } from '../run/lifecycle.ts';
import { turnActor } from '../turn/actor.ts';
import { checkedTurnOf, takeAppliedCheck } from '../turn/applied-check.ts';
import { preambleFor } from '../turn/preamble.ts';
import { joinedOpening, likelyIn, openingOf } from '../turn/turn-memory.ts';
import { withUnsettled } from '../turn/turn-scope.ts';
import type { Held } from '../turn/types.ts';
import { sessionActor } from './actor.ts';
import { eventOf } from './event-of.ts';
import { failCommand } from './fail-command.ts';
import { SESSION_MACHINE_VERSION, sessionMachine } from './machine.ts';
import { lostCheckTimer } from './message-checks.ts';
import { patchRecord } from './patch-record.ts';
import type { SessionActions, SessionContext } from './types.ts';

const handlers: Handlers<SessionActions> = {
  open: (plan, { command }) => {
    plan.record = recordOf(command, plan.at);
  },
  change: (plan, { command }) => {
    if (plan.record !== null) plan.record = { ...patchRecord(plan.record, command), updated_at: plan.at };
  },
  changeMode: (plan, { mode }) => {
    if (plan.record !== null) plan.record = { ...plan.record, mode, updated_at: plan.at };
  },
  changeEvent: (plan, { event }) => {
    plan.changeEvent(event);
    plan.posted = event;
  },
  cut: (plan, { from, to }) => plan.deleteEvents(from, to),
  openCheck: (plan, check) => {
    if (check === null) return;
    const { callId: id, eventId: actorId } = check;
    openEffect(plan, sessionActor.name, { kind: 'moderation', ...check }, { id, actorId, bundleHash: '', traceparent: plan.command.traceparent });
    const { key, atMs, command } = lostCheckTimer(check);
    plan.arm(key, atMs, { ...command, ...actorFields(actorId) });
  },
  closeCheck: (plan, { callId, marked }) => {
    if (marked !== null) plan.changeEvent(marked);
    plan.closeEffect(callId, 'done');
    plan.disarm(overdueKeyOf(callId));
  },
  openForRun: (plan, { runId }) => {
    plan.record = recordFor(plan, runId);
    plan.openCustomer(plan.record.customer_id);
  },
  fact: (plan, { content, source, metadata, trace, id = null }) => {
    plan.posted = plan.append(content, { source, metadata, traceId: traceIdOf(plan, trace), id });
  },
  beginTurn: (plan, { traceId, bundleHash, traceparent, carried }) =>
    plan.begin(turnActor, { traceId, bundleHash, traceparent, ...(carried && { carried }), startedAtMs: plan.atMs }),
  runTurn: (plan, { likeliest, isUnmoderated }) => {
    const { turnId } = contextOf(plan);
    if (turnId === null) throw new TypeError('a turn was started without an id');
    const { turnTimeoutMs: timeoutMs } = plan.inputs;
    plan.start(turnActor, {
      turnId,
      atMs: plan.atMs,
      timeoutMs,
      opening: openingOf(plan, likeliest),
      preamble: preambleFor(plan),
      held: heldIn(plan, likeliest) ?? (isUnmoderated && {}),
    });
    if (isUnmoderated) plan.send(turnActor, { type: 'moderation.failed', atMs: plan.atMs });
  },
  notifyTurn: (plan, { event }) => {
    const isNews = event.type === 'message.joined' || event.type === 'messages.checked';
    const body = isNews ? { ...event, opening: joinedOpening(plan), held: heldIn(plan) } : event;
    plan.send(turnActor, Object.assign({}, withUnsettled(plan, body), { atMs: plan.atMs }));
  },
  beginRun: (plan, { runId }) => beginRun(plan, runId),
  notifyRun: (plan, { event }) => plan.send(runActor, Object.assign({}, event, { atMs: plan.atMs })),
  awaitRun: (plan, { runId }) => awaitRun(plan, runId),
  failRuns: (plan, { runIds, error }) => failUnstarted(plan, runIds, error),
  endSession,
  erase,
  reply: (plan, params) => {
    const value = params.with === 'session' ? { session: plan.record } : params.with === 'posted-event' ? { event: plan.posted } : {};
    plan.reply = { ok: true, value };
  },
  refuse: (plan, { code, message }) => {
    plan.reply = { ok: false, code, message };
  },
};

const absent: ActorState & { context: SessionContext } = (() => {
  const [{ value, context }] = initialTransition(sessionMachine);
  return { value, context };
})();

/** Receives every command that is not for another kind: a session decides what its turn and its run see. */
export const sessionKind: ActorKind<Plan> = {
  name: sessionActor.name,
  machine: sessionMachine,
  snapshot: {
    version: SESSION_MACHINE_VERSION,
    place: 10_000,
    migrations: new Map([
      [1, withoutRuns],
      [2, unchanged],
      [3, withoutChecks],
    ]),
  },
  initial: absent,
  handlers,
  receives: () => true,
  receive(plan) {
    const checkedTurn = checkedTurnOf(plan.command);
    if (checkedTurn !== null) return takeAppliedCheck(plan, checkedTurn);
    const event = eventOf(plan);
    if (event !== null) plan.send(sessionActor, event);
  },
  fail: failCommand,
};

/** Version 1 had no runs. */
function withoutRuns({ value, context }: ActorState): ActorState {
  return { value, context: { ...context, ephemeral: false, isOver: false, runId: null, queue: [], wanted: null } };
}

/** Version 3 checked no messages. */
function withoutChecks({ value, context }: ActorState): ActorState {
  return { value, context: { ...context, checks: [] } };
}

/** Version 2 has the same states, and does not know the commands of version 3: its hosts must not own what hosts of version 3 have owned. */
function unchanged(state: ActorState): ActorState {
  return state;
}

/** Of a turn that begins, or gets another message: messages are still being checked. Undefined: it has not to wait. */
function heldIn(plan: Plan, awaited?: string): Held | undefined {
  return contextOf(plan).checks.length === 0 ? undefined : { likely: likelyIn(plan, awaited) };
}

/** Keeps the session's row as a tombstone: no new session under its id, and late results are ignored. */
function erase(plan: Plan): void {
  const { record } = plan;
  if (record === null) return;
  for (const callId of contextOf(plan).checks) {
    plan.closeEffect(callId, 'superseded');
    plan.disarm(overdueKeyOf(callId));
  }
  plan.send(eventWebhookActor, { type: 'session.erased' });
  plan.erase({ ...record, title: null, metadata: {}, labels: [], updated_at: plan.at }, { [sessionActor.name]: { ...absent, value: 'deleted' } });
}

function traceIdOf(plan: Plan, trace: SessionActions['fact']['trace']): string {
  const turn = trace === 'turn' ? plan.metadataOf(turnActor) : null;
  if (turn !== null) return turn.traceId;
  const { wanted } = contextOf(plan);
  return trace === 'wanted' && wanted !== null ? wanted.traceId : plan.ownTraceId();
}

function contextOf(plan: Plan): SessionContext {
  return (plan.stateOf(sessionActor) ?? absent).context;
}

function recordOf(command: CommandOf<'session.create'>, at: string): SessionRecord {
  return {
    id: command.sessionId,
    customer_id: command.customerId,
    agent_id: command.agentId,
    title: command.title,
    mode: command.mode,
    status: 'ready',
    created_at: at,
    updated_at: at,
    last_offset: -1,
    consumption_offsets: { client: -1 },
    metadata: command.metadata,
    labels: command.labels,
    ephemeral: false,
  };
}
