import type { SessionCommand } from '#bus/messages/session.ts';
import type { ConversationEvent, EventContent, EventSource } from '#shared/contracts/agent/conversation-event.ts';
import type { SessionRecord } from '#shared/contracts/agent/session.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Opening } from '../../effects/effect-kind.ts';
import { effects } from '../../effects/registry.ts';
import type { RunContext } from '../../kinds/run/types.ts';
import { sessionMachine } from '../../kinds/session/machine.ts';
import type { SessionContext } from '../../kinds/session/types.ts';
import type { TurnContext } from '../../kinds/turn/types.ts';
import type { AfterCommit, CommitPlan, EndedWork, Ending } from './commit-plan.ts';
import type { MachineState, RunMetadata, SessionState, TurnMetadata } from './snapshots.ts';
import { initialTransition } from './transition.ts';
import type { TransitionInputs } from './transition-inputs.ts';

type Operation = (plan: CommitPlan) => void;

interface EventAbout {
  source: EventSource;
  metadata: Record<string, unknown>;
  traceId: string;
  /** Null for a new one. */
  id: string | null;
}

/** A session while one command is applied. Its operations reach the plan only after the command succeeded. */
export class UnitOfWork {
  readonly partition: number;
  readonly sessionId: string;
  readonly command: SessionCommand;
  readonly transitionInputs: TransitionInputs;
  session: MachineState<SessionContext>;
  turn: MachineState<TurnContext> | null;
  turnMetadata: TurnMetadata | null;
  run: MachineState<RunContext> | null;
  runMetadata: RunMetadata | null;
  record: SessionRecord | null;
  head: number;
  isDeleted: boolean;
  readonly #operations: Operation[] = [];
  #ownTrace: string | null = null;

  constructor(partition: number, state: SessionState | null, command: SessionCommand, transitionInputs: TransitionInputs) {
    this.partition = partition;
    this.sessionId = command.sessionId;
    this.command = command;
    // Times never decrease within a log, whatever the hosts' clocks do.
    const lastAtMs = state === null ? 0 : Date.parse(state.record.updated_at);
    this.transitionInputs = { ...transitionInputs, atMs: Math.max(transitionInputs.atMs, lastAtMs) };
    this.session = state?.session ?? freshSession;
    this.turn = state?.turn ?? null;
    this.turnMetadata = state?.turn ?? null;
    this.run = state?.run ?? null;
    this.runMetadata = state?.run ?? null;
    this.record = state?.record ?? null;
    this.head = state?.head ?? 0;
    this.isDeleted = state?.isDeleted ?? false;
  }

  get atMs(): number {
    return this.transitionInputs.atMs;
  }

  applyTo(plan: CommitPlan): void {
    const { record, partition, sessionId: id, head, session, isDeleted } = this;
    if (record !== null) {
      const turn = this.turn === null || this.turnMetadata === null ? null : turnOf(this.turnMetadata, this.turn);
      const run = this.run === null || this.runMetadata === null ? null : runOf(this.runMetadata, this.run);
      plan.sessions.set(id, { id, partition, head, record, session, turn, run, isDeleted });
    }
    for (const operation of this.#operations) operation(plan);
  }

  /** Defers a change of the plan until the command has succeeded. */
  write(operation: Operation): void {
    this.#operations.push(operation);
  }

  append(content: EventContent, about: EventAbout): ConversationEvent {
    const { record } = this;
    if (record === null) throw new SwitchyardError('session.not_found', 'an event without a session');
    const createdAt = new Date(this.atMs).toISOString();
    const { kind, ...fields } = content;
    const event = {
      kind,
      offset: this.head,
      created_at: createdAt,
      id: about.id ?? `evt_${this.transitionInputs.newId()}`,
      source: about.source,
      trace_id: about.traceId,
      ...fields,
      metadata: about.metadata,
    } as ConversationEvent;
    this.record = { ...record, status: content.kind === 'status' ? content.status : record.status, last_offset: event.offset, updated_at: createdAt };
    this.head += 1;
    this.write((plan) => plan.appendEvent(this.partition, this.sessionId, event));
    return event;
  }

  /** A line for the log, after the commit. @param end null when nothing ends */
  note(what: AfterCommit['milestones'][number]['what'], ids: Record<string, string>, end: Ending | null = null): void {
    const { partition, sessionId } = this;
    this.write((plan) => plan.after.milestones.push({ partition, what, fields: { session_id: sessionId, ...ids }, end }));
  }

  /** Adds a turn's or run's end for traces, after the commit. */
  noteEnd(work: Omit<EndedWork, 'partition' | 'sessionId' | 'endedAtMs'>): void {
    const { partition, sessionId, atMs: endedAtMs } = this;
    this.write((plan) => plan.after.ended.push({ partition, sessionId, endedAtMs, ...work }));
  }

  /** @param request the machine's action */
  openEffect(actor: string, id: string, request: { kind: string; deadlineAtMs: number }, opening: Omit<Opening, 'lastOffset'>): void {
    const { partition, sessionId, atMs: createdAtMs, head } = this;
    const effect = { partition, id, sessionId, actorId: opening.actorId, createdAtMs, ...effects.opened(actor, request, { ...opening, lastOffset: head - 1 }) };
    this.write((plan) => plan.openEffect(effect));
  }

  closeEffect(id: string, state: 'done' | 'superseded'): void {
    this.write((plan) => plan.closeEffect(this.partition, id, state));
  }

  /** The command's id is the timer's key, so firing twice applies it once. */
  arm(key: string, atMs: number, command: TimerCommand): void {
    const { sessionId } = this;
    const body = JSON.stringify({ v: 1, sessionId, commandId: key, sentAtMs: this.atMs, answerTo: null, traceparent: this.command.traceparent, ...command });
    this.write((plan) => plan.armTimer(this.partition, key, atMs, body));
  }

  disarm(key: string): void {
    this.write((plan) => plan.disarmTimer(this.partition, key));
  }

  /** For events of a command outside turns and runs. */
  ownTraceId(): string {
    this.#ownTrace ??= this.command.type === 'message.post' ? this.command.traceId : this.transitionInputs.newTraceId();
    return this.#ownTrace;
  }
}

type Header = 'v' | 'sessionId' | 'commandId' | 'sentAtMs' | 'answerTo' | 'traceparent';
type TimerCommand =
  Extract<SessionCommand, { type: 'turn.deadline' | 'run.deadline' | 'effect.overdue' | 'delivery.due' }> extends infer Command
    ? Command extends SessionCommand
      ? Omit<Command, Header>
      : never
    : never;

const freshSession: MachineState<SessionContext> = (() => {
  const [{ value, context }] = initialTransition(sessionMachine);
  return { value, context };
})();

/** Context of a deleted session. */
export const emptyContext = freshSession.context;

function turnOf({ traceId, bundleHash, traceparent, startedAtMs }: TurnMetadata, { value, context }: MachineState<TurnContext>): SessionState['turn'] {
  return { traceId, bundleHash, traceparent, startedAtMs, value, context };
}

function runOf({ traceId, bundleHash, traceparent, startedAtMs, runId }: RunMetadata, { value, context }: MachineState<RunContext>): SessionState['run'] {
  return { traceId, bundleHash, traceparent, startedAtMs, runId, value, context };
}

export type Handlers<Actions> = { [Name in keyof Actions]: (params: Actions[Name]) => void };

/** `actions` is untyped: XState adds its built-in actions, which our machines do not use. */
export function applyActions<Actions>(handlers: Handlers<Actions>, actions: readonly { type: string; params?: unknown }[]): void {
  for (const { type, params } of actions) {
    if (!Object.hasOwn(handlers as object, type)) throw new TypeError(`there is no handler of the action '${type}'`);
    handlers[type as keyof Actions](params as Actions[keyof Actions]);
  }
}
