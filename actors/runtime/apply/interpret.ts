import type { CommandOf, CommandReply, SessionCommand } from '#bus/messages/session.ts';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { SessionRecord } from '#shared/contracts/agent/session.ts';
import { contextBelow } from '#shared/telemetry/trace-context.ts';
import { effects } from '../../effects/registry.ts';
import { sessionMachine } from '../../kinds/session/machine.ts';
import { patchProblem, patchRecord } from '../../kinds/session/patch-record.ts';
import type { SessionActions, SessionEvent } from '../../kinds/session/types.ts';
import { turnMachine } from '../../kinds/turn/machine.ts';
import type { TurnActions, TurnEventBody } from '../../kinds/turn/types.ts';
import type { CommitPlan, Ending } from './commit-plan.ts';
import { isDeliveryCommand, settleDelivery } from './deliveries.ts';
import { RunTransition } from './run-transition.ts';
import type { SessionState } from './snapshots.ts';
import { initialTransition, transition } from './transition.ts';
import type { TransitionInputs } from './transition-inputs.ts';
import { applyActions, emptyContext, type Handlers, UnitOfWork } from './unit-of-work.ts';

/**
 * Applies one command to a session and adds what follows to the plan: events, effects, timers, state, reply. When a transition throws, the plan is
 * unchanged.
 *
 * @param state null when there is no such session
 */
export function applyCommand(
  plan: CommitPlan,
  partition: number,
  state: SessionState | null,
  command: SessionCommand,
  transitionInputs: TransitionInputs,
): CommandReply | null {
  const application = new Application(plan, partition, state, command, transitionInputs);
  const reply = application.apply();
  application.unit.applyTo(plan);
  return reply;
}

/** Fails the turn or run in progress after one of its commands could not be applied, and a run that could not be started, so that none waits for ever. */
export function failActor(plan: CommitPlan, partition: number, state: SessionState | null, command: SessionCommand, transitionInputs: TransitionInputs): void {
  const application = new Application(plan, partition, state, command, transitionInputs);
  application.fail();
  application.unit.applyTo(plan);
}

class Application {
  readonly unit: UnitOfWork;
  readonly #runTransition: RunTransition;
  readonly #wasSuperseded: (effectId: string) => boolean;
  readonly #isSettled: (runId: string) => boolean;
  /** The event that the command itself appended. */
  #posted: ConversationEvent | null = null;
  #reply: CommandReply | null = null;

  constructor(plan: CommitPlan, partition: number, state: SessionState | null, command: SessionCommand, transitionInputs: TransitionInputs) {
    this.unit = new UnitOfWork(partition, state, command, transitionInputs);
    this.#wasSuperseded = (id) => plan.effectStates.get(id)?.state === 'superseded' || transitionInputs.isSuperseded(id);
    this.#isSettled = (id) => (plan.runs.get(id)?.completedAtMs ?? null) !== null || transitionInputs.isSettled(id);
    this.#runTransition = new RunTransition(this.unit, {
      stagedEarlier: plan.steps,
      onSettled: (runId) => this.#notifySession({ type: 'run.settled', runId }),
      onNothingLeft: () => this.#notifySession({ type: 'deliveries.settled' }),
    });
  }

  apply(): CommandReply | null {
    const { unit } = this;
    const { command } = unit;
    if (isDeliveryCommand(command)) {
      const isOver = settleDelivery(unit, command, this.#wasSuperseded);
      if (isOver) this.#notifySession({ type: 'deliveries.settled' });
      return null;
    }
    const event = this.#eventOf(command);
    if (event !== null) this.#notifySession(event);
    return this.#reply;
  }

  fail(): void {
    const { unit } = this;
    if (unit.turn !== null) this.#notifySession({ type: 'turn.result', event: { type: 'turn.poisoned' } });
    else if (unit.run !== null) this.#notifySession({ type: 'run.result', event: { type: 'run.poisoned' } });
    const { command } = unit;
    if (command.type !== 'run.start' || unit.runMetadata?.runId === command.runId || unit.transitionInputs.isSettled(command.runId)) return;
    this.#runTransition.failUnstarted([command.runId], unstartable);
  }

  /** Null when there is nothing to apply. */
  #eventOf(command: SessionCommand): SessionEvent | null {
    const { transitionInputs, run, record } = this.unit;
    switch (command.type) {
      case 'session.create':
        return { type: command.type, command, greeting: transitionInputs.greetingOf(command.bundleHash) };
      case 'session.patch':
        return { type: command.type, command, problem: record === null ? null : patchProblem(record, command) };
      case 'session.delete':
        return { type: command.type, unlessBusy: command.unlessBusy ?? false };
      case 'message.post': {
        const { atMs, coalesceMs } = transitionInputs;
        return { type: command.type, command, atMs, coalesceMs, newTurnId: `trn_${transitionInputs.newId()}` };
      }
      case 'run.start': {
        const facts = transitionInputs.runOf(command.runId);
        // A replayed dead letter starts a settled run under another command id.
        return facts === null || transitionInputs.isSettled(command.runId) ? null : { type: command.type, runId: command.runId, ephemeral: facts.ephemeral };
      }
      case 'run.deadline':
        return this.#isSettled(command.actorId) ? null : { type: 'run.expired', runId: command.actorId, event: command };
      case 'turn.deadline':
        return { type: 'turn.result', event: command };
      case 'call.completed':
      case 'call.failed':
        return run !== null && run.context.runId === command.actorId ? this.#runResult(command) : this.#turnResult(command);
      case 'tools.listed':
      case 'tool.completed':
      case 'effect.overdue':
        return this.#runResult(command);
      case 'delivery.reported':
      case 'delivery.due':
        return null;
    }
  }

  #turnResult(command: CommandOf<'call.completed' | 'call.failed'>): SessionEvent | null {
    const event = effects.eventOf<null, TurnEventBody>('turn', command, null);
    return event === null ? null : { type: 'turn.result', event };
  }

  #runResult(command: CommandOf<'call.completed' | 'call.failed' | 'tools.listed' | 'tool.completed' | 'effect.overdue'>): SessionEvent | null {
    const event = this.#runTransition.eventOf(command);
    return event === null ? null : { type: 'run.result', event };
  }

  #notifySession(event: SessionEvent): void {
    const { unit } = this;
    const [next, actions] = transition(sessionMachine, sessionMachine.resolveState(unit.session), event);
    unit.session = { value: next.value, context: next.context };
    applyActions(this.#sessionActions, actions);
  }

  readonly #sessionActions: Handlers<SessionActions> = {
    open: ({ command }) => {
      this.unit.record = recordOf(command, this.unit.atMs);
    },
    change: ({ command }) => {
      const { unit } = this;
      if (unit.record !== null) unit.record = { ...patchRecord(unit.record, command), updated_at: new Date(unit.atMs).toISOString() };
    },
    openForRun: ({ runId }) => {
      this.unit.record = this.#runTransition.recordFor(runId);
    },
    fact: ({ content, source, metadata, trace }) => {
      this.#posted = this.unit.append(content, { source, metadata, traceId: this.#traceIdOf(trace), id: null });
    },
    beginTurn: ({ traceId, bundleHash, traceparent }) => {
      this.unit.turnMetadata = { traceId, bundleHash, traceparent, startedAtMs: this.unit.atMs };
    },
    runTurn: () => {
      const { unit } = this;
      const { atMs, turnTimeoutMs } = unit.transitionInputs;
      const { turnId } = unit.session.context;
      if (turnId === null) throw new TypeError('a turn was started without an id');
      const [next, actions] = initialTransition(turnMachine, { turnId, atMs, timeoutMs: turnTimeoutMs });
      unit.turn = { value: next.value, context: next.context };
      unit.note('a turn began', { turn_id: turnId, trace_id: unit.turnMetadata?.traceId ?? '' });
      applyActions(this.#turnActions, actions);
    },
    notifyTurn: ({ event }) => this.#notifyTurn(event),
    beginRun: ({ runId }) => this.#runTransition.begin(runId),
    notifyRun: ({ event }) => this.#runTransition.notify(event),
    awaitRun: ({ runId }) => this.#runTransition.await(runId),
    failRuns: ({ runIds, error }) => this.#runTransition.failUnstarted(runIds, error),
    erase: () => this.#erase(),
    reply: (params) => {
      const value = params.with === 'session' ? { session: this.unit.record } : params.with === 'posted-event' ? { event: this.#posted } : {};
      this.#reply = { ok: true, value };
    },
    refuse: ({ code, message }) => {
      this.#reply = { ok: false, code, message };
    },
  };

  #traceIdOf(trace: SessionActions['fact']['trace']): string {
    const { unit } = this;
    if (trace === 'turn' && unit.turnMetadata !== null) return unit.turnMetadata.traceId;
    const { wanted } = unit.session.context;
    return trace === 'wanted' && wanted !== null ? wanted.traceId : unit.ownTraceId();
  }

  #notifyTurn(body: TurnEventBody): void {
    const { unit } = this;
    if (unit.turn === null) return;
    const { turnId, deadlineAtMs } = unit.turn.context;
    const event = { ...body, atMs: unit.atMs };
    const [next, actions] = transition(turnMachine, turnMachine.resolveState(unit.turn), event);
    unit.turn = { value: next.value, context: next.context };
    applyActions(this.#turnActions, actions);
    // A result with actions was the awaited one.
    if ('callId' in event && actions.length > 0) unit.closeEffect(event.callId, 'done');
    if (next.status !== 'done') return;
    const { atMs, turnTimeoutMs } = unit.transitionInputs;
    const outcome = next.value === 'completed' || next.value === 'cancelled' ? next.value : 'failed';
    // Only the deadline is in the turn's context.
    const end: Ending = { of: 'turn', outcome, durationMs: atMs - (deadlineAtMs - turnTimeoutMs) };
    unit.note('a turn ended', { turn_id: turnId, trace_id: unit.turnMetadata?.traceId ?? '' }, end);
    if (unit.turnMetadata !== null) {
      const { bundleHash, traceparent: parent, startedAtMs = atMs } = unit.turnMetadata;
      unit.noteEnd({ kind: 'turn', id: turnId, routineId: null, bundleHash, parent, startedAtMs, outcome });
    }
    unit.turn = null;
    this.#notifySession({ type: 'turn.settled', turnId });
  }

  readonly #turnActions: Handlers<TurnActions> = {
    fact: ({ content, id, metadata }) => {
      const { unit } = this;
      unit.append(content, { source: 'ai_agent', metadata, traceId: unit.turnMetadata?.traceId ?? unit.ownTraceId(), id });
    },
    effect: (request) => {
      const { unit } = this;
      if (unit.turnMetadata === null || unit.turn === null) throw new TypeError('an effect outside a turn');
      const { bundleHash } = unit.turnMetadata;
      const { turnId } = unit.turn.context;
      const traceparent = contextBelow(unit.turnMetadata.traceparent, turnId);
      unit.openEffect('turn', request.id, request, { actorId: turnId, bundleHash, traceparent });
    },
    supersede: ({ id }) => this.unit.closeEffect(id, 'superseded'),
    timer: ({ key, atMs }) => {
      const { turnId } = this.unit.session.context;
      if (turnId === null) throw new TypeError('a timer outside a turn');
      this.unit.arm(key, atMs, { type: 'turn.deadline', turnId });
    },
    disarm: ({ key }) => this.unit.disarm(key),
  };

  /** Keeps the session's row as a tombstone: no new session under its id, and late results are ignored. */
  #erase(): void {
    const { unit } = this;
    const { record } = unit;
    if (record === null) return;
    unit.isDeleted = true;
    unit.turn = null;
    unit.run = null;
    unit.session = { value: 'deleted', context: emptyContext };
    unit.record = { ...record, title: null, metadata: {}, labels: [], updated_at: new Date(unit.atMs).toISOString() };
    unit.write((plan) => plan.deleteSession(unit.partition, unit.sessionId));
  }
}

const unstartable = { code: 'engine_error' as const, message: 'the run could not be started', details: {} };

function recordOf(command: CommandOf<'session.create'>, atMs: number): SessionRecord {
  const at = new Date(atMs).toISOString();
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
