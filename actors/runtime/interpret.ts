import { initialTransition, transition } from 'xstate';
import type { Answer, CommandOf, SessionCommand } from '#bus/messages/session.ts';
import type { ConversationEvent, EventContent, EventSource } from '#shared/contracts/agent/conversation-event.ts';
import type { SessionRecord } from '#shared/contracts/agent/session.ts';
import { type Failure, SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { sessionMachine } from '../session/machine.ts';
import type { SessionActions, SessionContext, SessionEvent } from '../session/types.ts';
import { turnMachine } from '../turn/machine.ts';
import type { TurnActions, TurnContext, TurnEvent } from '../turn/types.ts';
import type { CommitPlan } from './commit-plan.ts';
import type { SessionState, TurnFrame } from './snapshots.ts';

/** What a transition may know of the world. Nothing else gets in, so the same command on the same state always gives the same rows. */
export interface Surroundings {
  atMs: number;
  coalesceMs: number;
  turnTimeoutMs: number;
  /** The greeting of a bundle, null when it has none. */
  greetingOf(bundleHash: string): string | null;
  /** A fresh ULID. */
  newId(): string;
  /** A fresh 32-hex trace id. */
  newTraceId(): string;
}

type Operation = (plan: CommitPlan) => void;

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
  const application = new Application(partition, state, command, surroundings);
  const answer = application.run(application.eventOf(command));
  for (const operation of application.operations) operation(plan);
  return answer;
}

/** Ends the turn in progress, if any, as an error: a command of its could not be applied, and no turn may be left hanging. */
export function failTurn(plan: CommitPlan, partition: number, state: SessionState, command: SessionCommand, surroundings: Surroundings): void {
  const application = new Application(partition, state, command, surroundings);
  application.run({ type: 'turn.result', event: { type: 'turn.poisoned' } });
  for (const operation of application.operations) operation(plan);
}

/** One command being applied. It writes into a draft; only when all went well are the operations carried out on the plan. */
class Application {
  readonly operations: Operation[] = [];
  readonly #partition: number;
  readonly #command: SessionCommand;
  readonly #surroundings: Surroundings;
  #session: { value: string; context: SessionContext };
  #turn: { value: string; context: TurnContext } | null;
  #frame: TurnFrame | null;
  #record: SessionRecord | null;
  #head: number;
  /** The event that the command itself put into the log. */
  #posted: ConversationEvent | null = null;
  #answer: Answer | null = null;
  #ownTrace: string | null = null;

  constructor(partition: number, state: SessionState | null, command: SessionCommand, surroundings: Surroundings) {
    this.#partition = partition;
    this.#command = command;
    // Time never runs backwards within a log, whatever the hosts' clocks do.
    const lastAtMs = state === null ? 0 : Date.parse(state.record.updated_at);
    this.#surroundings = { ...surroundings, atMs: Math.max(surroundings.atMs, lastAtMs) };
    this.#session = state?.session ?? FRESH_SESSION;
    this.#turn = state?.turn ?? null;
    this.#frame = state?.turn ?? null;
    this.#record = state?.record ?? null;
    this.#head = state?.head ?? 0;
  }

  run(event: SessionEvent): Answer | null {
    this.#tellSession(event);
    const record = this.#record;
    if (record !== null) {
      const state: SessionState = {
        id: this.#command.sessionId,
        partition: this.#partition,
        head: this.#head,
        record,
        session: this.#session,
        turn: this.#turn === null || this.#frame === null ? null : { ...this.#frame, ...this.#turn },
      };
      this.operations.push((plan) => plan.sessions.set(state.id, state));
    }
    return this.#answer;
  }

  eventOf(command: SessionCommand): SessionEvent {
    switch (command.type) {
      case 'session.create':
        return { type: command.type, command, greeting: this.#surroundings.greetingOf(command.bundleHash) };
      case 'message.post':
        return {
          type: command.type,
          command,
          atMs: this.#surroundings.atMs,
          coalesceMs: this.#surroundings.coalesceMs,
          newTurnId: `trn_${this.#surroundings.newId()}`,
        };
      case 'call.completed':
      case 'turn.deadline':
        return { type: 'turn.result', event: command };
      case 'call.failed':
        return { type: 'turn.result', event: { ...command, failure: command.failure as Failure } };
    }
  }

  #tellSession(event: SessionEvent): void {
    const [next, actions] = transition(sessionMachine, sessionMachine.resolveState(this.#session), event);
    this.#session = { value: next.value, context: next.context };
    carryOut(this.#sessionActions, actions);
  }

  readonly #sessionActions: Handlers<SessionActions> = {
    open: ({ command }) => {
      this.#record = recordOf(command, this.#surroundings.atMs);
    },
    fact: ({ content, source, metadata, trace }) => {
      const traceId = trace === 'turn' && this.#frame !== null ? this.#frame.traceId : this.#ownTraceId();
      this.#posted = this.#append(content, { source, metadata, traceId, id: null });
    },
    beginTurn: ({ traceId, bundleHash }) => {
      this.#frame = { traceId, bundleHash, traceparent: this.#command.traceparent };
    },
    runTurn: () => {
      const { atMs, turnTimeoutMs } = this.#surroundings;
      const turnId = this.#session.context.turnId;
      if (turnId === null) throw new TypeError('a turn was started without an id');
      const [next, actions] = initialTransition(turnMachine, { turnId, atMs, timeoutMs: turnTimeoutMs });
      this.#turn = { value: next.value, context: next.context };
      carryOut(this.#turnActions, actions);
    },
    tellTurn: ({ event }) => this.#tellTurn(event),
    answer: (params) => {
      this.#answer = { ok: true, value: params.with === 'session' ? { session: this.#record } : { event: this.#posted } };
    },
    refuse: ({ code, message }) => {
      this.#answer = { ok: false, code, message };
    },
  };

  #tellTurn(event: TurnEvent): void {
    if (this.#turn === null) return;
    const { turnId } = this.#turn.context;
    const [next, actions] = transition(turnMachine, turnMachine.resolveState(this.#turn), event);
    this.#turn = { value: next.value, context: next.context };
    carryOut(this.#turnActions, actions);
    // A result that changed something was the one waited for.
    if ('callId' in event && actions.length > 0) {
      const { callId } = event;
      this.operations.push((plan) => plan.closeEffect(this.#partition, callId, 'done'));
    }
    if (next.status !== 'done') return;
    this.#turn = null;
    this.#tellSession({ type: 'turn.settled', turnId });
  }

  readonly #turnActions: Handlers<TurnActions> = {
    fact: ({ content, id, metadata }) => {
      this.#append(content, { source: 'ai_agent', metadata, traceId: this.#frame?.traceId ?? this.#ownTraceId(), id });
    },
    effect: ({ kind, id, deadlineAtMs }) => {
      if (this.#frame === null || this.#turn === null) throw new TypeError('an effect outside a turn');
      const { bundleHash, traceparent } = this.#frame;
      const inputs = { template: 'compose@1' as const, bundleHash, upToOffset: this.#head - 1, deadlineAtMs, traceparent };
      const { turnId } = this.#turn.context;
      const { sessionId } = this.#command;
      const createdAtMs = this.#surroundings.atMs;
      this.operations.push((plan) => plan.openEffect({ partition: this.#partition, id, sessionId, turnId, kind, inputs, createdAtMs }));
    },
    supersede: ({ id }) => {
      this.operations.push((plan) => plan.closeEffect(this.#partition, id, 'superseded'));
    },
    timer: ({ key, atMs }) => {
      const command = this.#deadlineCommand(key);
      this.operations.push((plan) => plan.armTimer(this.#partition, key, atMs, JSON.stringify(command)));
    },
    disarm: ({ key }) => {
      this.operations.push((plan) => plan.disarmTimer(this.#partition, key));
    },
  };

  /** Time comes to the machines as a command. Its id is the timer's key, so a timer that fires twice is applied once. */
  #deadlineCommand(key: string): CommandOf<'turn.deadline'> {
    const turnId = this.#session.context.turnId;
    if (turnId === null) throw new TypeError('a timer outside a turn');
    const { sessionId, traceparent } = this.#command;
    return { v: 1, type: 'turn.deadline', sessionId, commandId: key, sentAtMs: this.#surroundings.atMs, answerTo: null, traceparent, turnId };
  }

  #append(content: EventContent, about: { source: EventSource; metadata: Record<string, unknown>; traceId: string; id: string | null }): ConversationEvent {
    const record = this.#record;
    if (record === null) throw new SwitchyardError('session.not_found', 'an event without a session');
    const createdAt = new Date(this.#surroundings.atMs).toISOString();
    const { kind, ...fields } = content;
    const event = {
      kind,
      offset: this.#head,
      created_at: createdAt,
      id: about.id ?? `evt_${this.#surroundings.newId()}`,
      source: about.source,
      trace_id: about.traceId,
      ...fields,
      metadata: about.metadata,
    } as ConversationEvent;
    this.#record = {
      ...record,
      status: content.kind === 'status' ? content.status : record.status,
      last_offset: event.offset,
      updated_at: createdAt,
    };
    this.#head += 1;
    this.operations.push((plan) => plan.appendEvent(this.#partition, this.#command.sessionId, event));
    return event;
  }

  /** One trace for all that a command brings about by itself. */
  #ownTraceId(): string {
    this.#ownTrace ??= this.#command.type === 'message.post' ? this.#command.traceId : this.#surroundings.newTraceId();
    return this.#ownTrace;
  }
}

type Handlers<Actions> = { [Name in keyof Actions]: (params: Actions[Name]) => void };

/** Actions come typed by the machine that named them, but under one roof with XState's own, which none of our machines uses. */
function carryOut<Actions>(handlers: Handlers<Actions>, actions: readonly { type: string; params?: unknown }[]): void {
  for (const { type, params } of actions) {
    if (!Object.hasOwn(handlers as object, type)) throw new TypeError(`nobody carries out the action '${type}'`);
    handlers[type as keyof Actions](params as Actions[keyof Actions]);
  }
}

const FRESH_SESSION = (() => {
  const [{ value, context }] = initialTransition(sessionMachine);
  return { value, context };
})();

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
