import type { Answer, CommandOf, SessionCommand } from '#bus/messages/session.ts';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { SessionRecord } from '#shared/contracts/agent/session.ts';
import type { Failure } from '#shared/errors/switchyard-error.ts';
import { contextBelow } from '#shared/telemetry/trace-context.ts';
import { sessionMachine } from '../session/machine.ts';
import { patchProblem, patchRecord } from '../session/patch-record.ts';
import type { SessionActions, SessionEvent } from '../session/types.ts';
import { turnMachine } from '../turn/machine.ts';
import type { TurnActions, TurnEventBody } from '../turn/types.ts';
import type { CommitPlan, Ending } from './commit-plan.ts';
import { isDeliveryCommand, settleDelivery } from './deliveries.ts';
import { RunPart } from './run-transition.ts';
import type { SessionState } from './snapshots.ts';
import { initialTransition, transition } from './transition.ts';
import type { Surroundings } from './transition-inputs.ts';
import { carryOutActions, Draft, emptyContext, type Handlers } from './unit-of-work.ts';

/**
 * Applies one command to a session and puts what follows from it into the plan: events, effects, timers, the new state, the answer.
 * All or nothing: when a transition throws, the plan is as it was.
 *
 * @param state null when there is no such session
 */
export function applyCommand(
  plan: CommitPlan,
  partition: number,
  state: SessionState | null,
  command: SessionCommand,
  surroundings: Surroundings,
): Answer | null {
  const application = new Application(plan, partition, state, command, surroundings);
  const answer = application.apply();
  application.draft.carryOut(plan);
  return answer;
}

/**
 * Ends the turn or the run in progress, if any, as an error: a command of its could not be applied, and nothing may be left hanging.
 * A run that could not even be started is ended too.
 */
export function failActor(plan: CommitPlan, partition: number, state: SessionState | null, command: SessionCommand, surroundings: Surroundings): void {
  const application = new Application(plan, partition, state, command, surroundings);
  application.poison();
  application.draft.carryOut(plan);
}

/** One command being applied, by the machines of session, turn and run together. */
class Application {
  readonly draft: Draft;
  readonly #runPart: RunPart;
  readonly #wasSuperseded: (effectId: string) => boolean;
  readonly #isSettled: (runId: string) => boolean;
  /** The event that the command itself put into the log. */
  #posted: ConversationEvent | null = null;
  #answer: Answer | null = null;

  constructor(plan: CommitPlan, partition: number, state: SessionState | null, command: SessionCommand, surroundings: Surroundings) {
    this.draft = new Draft(partition, state, command, surroundings);
    this.#wasSuperseded = (id) => plan.effectStates.get(id)?.state === 'superseded' || surroundings.isSuperseded(id);
    this.#isSettled = (id) => (plan.runs.get(id)?.completedAtMs ?? null) !== null || surroundings.isSettled(id);
    this.#runPart = new RunPart(this.draft, {
      stagedEarlier: plan.steps,
      onSettled: (runId) => this.#tellSession({ type: 'run.settled', runId }),
      onNothingLeft: () => this.#tellSession({ type: 'deliveries.settled' }),
    });
  }

  apply(): Answer | null {
    const { draft } = this;
    const { command } = draft;
    if (isDeliveryCommand(command)) {
      const isOver = settleDelivery(draft, command, this.#wasSuperseded);
      if (isOver) this.#tellSession({ type: 'deliveries.settled' });
      return null;
    }
    const event = this.#eventOf(command);
    if (event !== null) this.#tellSession(event);
    return this.#answer;
  }

  poison(): void {
    const { draft } = this;
    if (draft.turn !== null) this.#tellSession({ type: 'turn.result', event: { type: 'turn.poisoned' } });
    else if (draft.run !== null) this.#tellSession({ type: 'run.result', event: { type: 'run.poisoned' } });
    const { command } = draft;
    if (command.type !== 'run.start' || draft.runFrame?.runId === command.runId || draft.surroundings.isSettled(command.runId)) return;
    this.#runPart.failUnstarted([command.runId], unstartable);
  }

  /** Null for what concerns nobody any more. */
  #eventOf(command: SessionCommand): SessionEvent | null {
    const { surroundings, run, record } = this.draft;
    switch (command.type) {
      case 'session.create':
        return { type: command.type, command, greeting: surroundings.greetingOf(command.bundleHash) };
      case 'session.patch':
        return { type: command.type, command, problem: record === null ? null : patchProblem(record, command) };
      case 'session.delete':
        return { type: command.type, unlessBusy: command.unlessBusy ?? false };
      case 'message.post': {
        const { atMs, coalesceMs } = surroundings;
        return { type: command.type, command, atMs, coalesceMs, newTurnId: `trn_${surroundings.newId()}` };
      }
      case 'run.start': {
        const facts = surroundings.runOf(command.runId);
        // One that is over can come again under another id: as a dead letter that is replayed.
        return facts === null || surroundings.isSettled(command.runId) ? null : { type: command.type, runId: command.runId, ephemeral: facts.ephemeral };
      }
      case 'run.deadline':
        return this.#isSettled(command.turnId) ? null : { type: 'run.expired', runId: command.turnId, event: command };
      case 'turn.deadline':
        return { type: 'turn.result', event: command };
      case 'call.completed':
        return run !== null && run.context.runId === command.turnId ? this.#runResult(command) : { type: 'turn.result', event: command };
      case 'call.failed': {
        const failed = { ...command, failure: command.failure as Failure };
        return run !== null && run.context.runId === command.turnId ? { type: 'run.result', event: failed } : { type: 'turn.result', event: failed };
      }
      case 'tools.listed':
      case 'tool.completed':
      case 'effect.overdue':
        return this.#runResult(command);
      case 'delivery.reported':
      case 'delivery.due':
        return null;
    }
  }

  #runResult(command: CommandOf<'call.completed' | 'tools.listed' | 'tool.completed' | 'effect.overdue'>): SessionEvent | null {
    const event = this.#runPart.eventOf(command);
    return event === null ? null : { type: 'run.result', event };
  }

  #tellSession(event: SessionEvent): void {
    const { draft } = this;
    const [next, actions] = transition(sessionMachine, sessionMachine.resolveState(draft.session), event);
    draft.session = { value: next.value, context: next.context };
    carryOutActions(this.#sessionActions, actions);
  }

  readonly #sessionActions: Handlers<SessionActions> = {
    open: ({ command }) => {
      this.draft.record = recordOf(command, this.draft.atMs);
    },
    change: ({ command }) => {
      const { draft } = this;
      if (draft.record !== null) draft.record = { ...patchRecord(draft.record, command), updated_at: new Date(draft.atMs).toISOString() };
    },
    openForRun: ({ runId }) => {
      this.draft.record = this.#runPart.recordFor(runId);
    },
    fact: ({ content, source, metadata, trace }) => {
      this.#posted = this.draft.append(content, { source, metadata, traceId: this.#traceIdOf(trace), id: null });
    },
    beginTurn: ({ traceId, bundleHash, traceparent }) => {
      this.draft.turnFrame = { traceId, bundleHash, traceparent, startedAtMs: this.draft.atMs };
    },
    runTurn: () => {
      const { draft } = this;
      const { atMs, turnTimeoutMs } = draft.surroundings;
      const { turnId } = draft.session.context;
      if (turnId === null) throw new TypeError('a turn was started without an id');
      const [next, actions] = initialTransition(turnMachine, { turnId, atMs, timeoutMs: turnTimeoutMs });
      draft.turn = { value: next.value, context: next.context };
      draft.note('a turn began', { turn_id: turnId, trace_id: draft.turnFrame?.traceId ?? '' });
      carryOutActions(this.#turnActions, actions);
    },
    tellTurn: ({ event }) => this.#tellTurn(event),
    beginRun: ({ runId }) => this.#runPart.begin(runId),
    tellRun: ({ event }) => this.#runPart.tell(event),
    awaitRun: ({ runId }) => this.#runPart.await(runId),
    failRuns: ({ runIds, error }) => this.#runPart.failUnstarted(runIds, error),
    erase: () => this.#erase(),
    answer: (params) => {
      const value = params.with === 'session' ? { session: this.draft.record } : params.with === 'posted-event' ? { event: this.#posted } : {};
      this.#answer = { ok: true, value };
    },
    refuse: ({ code, message }) => {
      this.#answer = { ok: false, code, message };
    },
  };

  #traceIdOf(trace: SessionActions['fact']['trace']): string {
    const { draft } = this;
    if (trace === 'turn' && draft.turnFrame !== null) return draft.turnFrame.traceId;
    const { wanted } = draft.session.context;
    return trace === 'wanted' && wanted !== null ? wanted.traceId : draft.ownTraceId();
  }

  #tellTurn(body: TurnEventBody): void {
    const { draft } = this;
    if (draft.turn === null) return;
    const { turnId, deadlineAtMs } = draft.turn.context;
    const event = { ...body, atMs: draft.atMs };
    const [next, actions] = transition(turnMachine, turnMachine.resolveState(draft.turn), event);
    draft.turn = { value: next.value, context: next.context };
    carryOutActions(this.#turnActions, actions);
    // A result that changed something was the one waited for.
    if ('callId' in event && actions.length > 0) draft.closeEffect(event.callId, 'done');
    if (next.status !== 'done') return;
    const { atMs, turnTimeoutMs } = draft.surroundings;
    const outcome = next.value === 'completed' || next.value === 'cancelled' ? next.value : 'failed';
    // Of its times a turn keeps its deadline alone.
    const end: Ending = { of: 'turn', outcome, durationMs: atMs - (deadlineAtMs - turnTimeoutMs) };
    draft.note('a turn ended', { turn_id: turnId, trace_id: draft.turnFrame?.traceId ?? '' }, end);
    if (draft.turnFrame !== null) {
      const { bundleHash, traceparent: parent, startedAtMs = atMs } = draft.turnFrame;
      draft.tellEnd({ kind: 'turn', id: turnId, routineId: null, bundleHash, parent, startedAtMs, outcome });
    }
    draft.turn = null;
    this.#tellSession({ type: 'turn.settled', turnId });
  }

  readonly #turnActions: Handlers<TurnActions> = {
    fact: ({ content, id, metadata }) => {
      const { draft } = this;
      draft.append(content, { source: 'ai_agent', metadata, traceId: draft.turnFrame?.traceId ?? draft.ownTraceId(), id });
    },
    effect: ({ kind, id, deadlineAtMs }) => {
      const { draft } = this;
      if (draft.turnFrame === null || draft.turn === null) throw new TypeError('an effect outside a turn');
      const { bundleHash } = draft.turnFrame;
      const { turnId } = draft.turn.context;
      const traceparent = contextBelow(draft.turnFrame.traceparent, turnId);
      const inputs = { template: 'compose@1' as const, bundleHash, upToOffset: draft.head - 1, deadlineAtMs, traceparent };
      draft.openEffect(id, turnId, { kind, inputs });
    },
    supersede: ({ id }) => this.draft.closeEffect(id, 'superseded'),
    timer: ({ key, atMs }) => {
      const { turnId } = this.draft.session.context;
      if (turnId === null) throw new TypeError('a timer outside a turn');
      this.draft.arm(key, atMs, { type: 'turn.deadline', turnId });
    },
    disarm: ({ key }) => this.draft.disarm(key),
  };

  /** What the log held goes; the row stays as a tombstone, so that nobody makes the session anew and late results find it gone. */
  #erase(): void {
    const { draft } = this;
    const { record } = draft;
    if (record === null) return;
    draft.isDeleted = true;
    draft.turn = null;
    draft.run = null;
    draft.session = { value: 'deleted', context: emptyContext };
    draft.record = { ...record, title: null, metadata: {}, labels: [], updated_at: new Date(draft.atMs).toISOString() };
    draft.write((plan) => plan.deleteSession(draft.partition, draft.sessionId));
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
