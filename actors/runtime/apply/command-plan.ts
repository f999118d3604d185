import type { AnyMachineSnapshot } from 'xstate';
import type { CommandReply, SessionCommand } from '#bus/messages/session.ts';
import type { ConversationEvent, EventContent, EventSource } from '#shared/contracts/agent/conversation-event.ts';
import type { SessionRecord } from '#shared/contracts/agent/session.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { EffectRow } from '../../effects/effect-row.ts';
import type { ActorKind, ActorKinds, ActorMetadata, ActorName, ActorState } from '../../kinds/actor-kind.ts';
import type { CommitPlan } from './commit-plan.ts';
import type {
  AgentStateRow,
  ChangedEvent,
  ClosedEffect,
  CommandRows,
  CustomerRow,
  DeadLetter,
  DeletedEvents,
  DeliveryEnd,
  DeliveryRow,
  EndedWork,
  Ending,
  EventRow,
  LabelledSession,
  Milestone,
  OpenedEffect,
  RunCallRow,
  RunProgress,
  StepRow,
  TimerRow,
  TimerStorage,
  TurnStepRow,
} from './commit-rows.ts';
import { instant } from './instant.ts';
import type { ActorStates, SessionState } from './session-state.ts';
import { initialTransition, transition } from './transition.ts';
import type { TransitionInputs } from './transition-inputs.ts';

interface EventAbout {
  source: EventSource;
  metadata: Record<string, unknown>;
  traceId: string;
  /** Null for a new one. */
  id: string | null;
}

type Header = 'v' | 'sessionId' | 'commandId' | 'sentAtMs' | 'answerTo' | 'traceparent';
type WithoutHeader<Command> = Command extends SessionCommand ? Omit<Command, Header> : never;

export interface PlanScope<Inputs extends TransitionInputs> {
  kinds: ActorKinds<CommandPlan<Inputs>>;
  partition: number;
  /** Null when there is no such session. */
  state: SessionState | null;
  command: SessionCommand;
  inputs: Inputs;
  /** Of the batch's earlier commands. */
  earlier: CommitPlan;
}

/** What one command does to its session: the states of its actors, and the rows. A commit's plan takes it over only when the command has succeeded. */
export class CommandPlan<Inputs extends TransitionInputs = TransitionInputs> implements CommandRows {
  readonly partition: number;
  readonly sessionId: string;
  readonly command: SessionCommand;
  readonly inputs: Inputs;
  readonly earlier: CommitPlan;
  /** Times never decrease within a log, whatever the hosts' clocks do. */
  readonly atMs: number;
  record: SessionRecord | null;
  isErased = false;
  reply: CommandReply | null = null;
  /** The event that the command itself appended. */
  posted: ConversationEvent | null = null;
  readonly customers: CustomerRow[] = [];
  readonly events: EventRow[] = [];
  readonly changedEvents: ChangedEvent[] = [];
  readonly deletedEvents: DeletedEvents[] = [];
  readonly steps: StepRow[] = [];
  turnSteps: TurnStepRow[] = [];
  agentStates: AgentStateRow[] = [];
  readonly effects: OpenedEffect[] = [];
  readonly closedEffects: ClosedEffect[] = [];
  readonly timers: TimerRow[] = [];
  readonly runs: RunProgress[] = [];
  readonly runCalls: RunCallRow[] = [];
  readonly deliveries: DeliveryRow[] = [];
  readonly deliveryEnds: DeliveryEnd[] = [];
  readonly deadLetters: DeadLetter[] = [];
  readonly aborts: { partition: number; callId: string }[] = [];
  readonly milestones: Milestone[] = [];
  readonly ended: EndedWork[] = [];
  readonly #kinds: ActorKinds<CommandPlan<Inputs>>;
  readonly #before: SessionState | null;
  readonly #actors: { [kind: string]: ActorState | null };
  #begun: { kind: string; metadata: ActorMetadata } | null = null;
  #head: number;
  #ownTrace: string | null = null;

  constructor({ kinds, partition, state, command, inputs, earlier }: PlanScope<Inputs>) {
    this.#kinds = kinds;
    this.partition = partition;
    this.sessionId = command.sessionId;
    this.command = command;
    this.inputs = inputs;
    this.earlier = earlier;
    this.atMs = state === null ? inputs.atMs : Math.max(inputs.atMs, Date.parse(state.record.updated_at));
    this.record = state?.record ?? null;
    this.#before = state;
    this.#actors = { ...state?.actors };
    this.#head = state?.head ?? 0;
  }

  /** The session as this command leaves it; null: there is none. */
  get session(): SessionState | null {
    const { record, partition, sessionId: id } = this;
    if (record === null) return null;
    return { id, partition, head: this.#head, record, actors: this.#actors, isDeleted: this.isErased || (this.#before?.isDeleted ?? false) };
  }

  /** Null: its labels are as before. */
  get labelled(): LabelledSession | null {
    const { record, partition, sessionId } = this;
    const before = this.#before?.record.labels ?? [];
    const labels = record?.labels ?? [];
    // A change makes a new list.
    if (record === null || labels === before || (labels.length === 0 && before.length === 0)) return null;
    return { partition, sessionId, customerId: record.customer_id, createdAt: record.created_at, labels };
  }

  /** Whether this command has created the session. */
  get isNew(): boolean {
    return this.#before === null && this.record !== null;
  }

  /** Offset of the session's last event; -1 before the first. */
  get lastOffset(): number {
    return this.#head - 1;
  }

  /** RFC 3339. */
  get at(): string {
    return instant(this.atMs);
  }

  /** Null: none is in progress. */
  stateOf<State extends ActorState, Event>({ name }: ActorName<State, Event>): State | null {
    return (this.#actors[name] ?? null) as State | null;
  }

  /** As it was before this command. */
  stateBefore<State extends ActorState, Event>({ name }: ActorName<State, Event>): State | null {
    return (this.#before?.actors[name] ?? null) as State | null;
  }

  /** What is stored beside the machine of the actor in progress, or of the one that is about to start. */
  metadataOf<State extends ActorState & ActorMetadata, Event>(actor: ActorName<State, Event>): ActorMetadata | null {
    return this.#begun?.kind === actor.name ? this.#begun.metadata : this.stateOf(actor);
  }

  /** Before `start`: events of the session already carry its trace. */
  begin<State extends ActorState & ActorMetadata, Event>({ name }: ActorName<State, Event>, metadata: Omit<State, keyof ActorState>): void {
    this.#begun = { kind: name, metadata: metadata as unknown as ActorMetadata };
  }

  start<State extends ActorState, Event>({ name }: ActorName<State, Event>, input: object): void {
    const kind = this.#kindOf(name);
    const [next, actions] = initialTransition(kind.machine, input);
    const metadata = this.#begun?.kind === name ? this.#begun.metadata : null;
    this.#begun = null;
    this.#enter(kind, null, metadata, next, actions, null);
  }

  /** Does nothing when none is in progress. */
  send<State extends ActorState, Event extends { type: string }>({ name }: ActorName<State, Event>, event: Event): void {
    const kind = this.#kindOf(name);
    const before = this.#actors[name] ?? kind.initial;
    if (before === null) return;
    this.#advance(kind, before, event);
  }

  /** As `send`, for an actor of which no state is stored. */
  sendTo<State extends ActorState, Event extends { type: string }>({ name }: ActorName<State, Event>, state: State, event: Event): void {
    this.#advance(this.#kindOf(name), state, event);
  }

  end<State extends ActorState, Event>({ name }: ActorName<State, Event>): void {
    this.#actors[name] = null;
  }

  /** Deletes the session's rows but a tombstone, and the states of all actors but the given. */
  erase(tombstone: SessionRecord, actors: ActorStates): void {
    this.record = tombstone;
    this.isErased = true;
    for (const name of Object.keys(this.#actors)) this.#actors[name] = null;
    Object.assign(this.#actors, actors);
  }

  /** For the session's run alone. */
  openCustomer(id: string): void {
    const { partition, sessionId, atMs: createdAtMs } = this;
    this.customers.push({ partition, sessionId, id, createdAtMs });
  }

  append(content: EventContent, { source, metadata, traceId, id }: EventAbout): ConversationEvent {
    const { record, at } = this;
    if (record === null) throw new SwitchyardError('session.not_found', 'an event without a session');
    const { kind, ...fields } = content;
    const event = {
      kind,
      offset: this.#head,
      created_at: at,
      id: id ?? `evt_${this.inputs.newId(this.atMs)}`,
      source,
      trace_id: traceId,
      ...fields,
      metadata,
    } as ConversationEvent;
    // A front end's status says nothing about the session's turn.
    const status = content.kind === 'status' && source === 'ai_agent' ? content.status : record.status;
    this.record = { ...record, status, last_offset: event.offset, updated_at: at };
    this.#head += 1;
    this.events.push({ partition: this.partition, sessionId: this.sessionId, event, text: JSON.stringify(event) });
    return event;
  }

  /** Replaces a stored event of an earlier commit. */
  changeEvent(event: ConversationEvent): void {
    const { partition, sessionId } = this;
    this.changedEvents.push({ partition, sessionId, offset: event.offset, text: JSON.stringify(event) });
    this.#touch();
  }

  /** Deletes stored events of earlier commits, with what stands at their offsets. @param to exclusive */
  deleteEvents(fromOffset: number, toOffset: number): void {
    const { partition, sessionId, atMs } = this;
    const isKept = ({ offset }: { offset: number }) => offset < fromOffset || offset >= toOffset;
    // The end of a turn stages some, which the statement would store behind its deletion.
    this.turnSteps = this.turnSteps.filter(isKept);
    this.agentStates = this.agentStates.filter(isKept);
    this.deletedEvents.push({ partition, sessionId, fromOffset, toOffset, atMs });
    this.#touch();
  }

  #touch(): void {
    if (this.record !== null) this.record = { ...this.record, updated_at: this.at };
  }

  /** A line for the log, after the commit. @param end null when nothing ends */
  note(what: string, ids: Record<string, string>, end: Ending | null = null): void {
    this.milestones.push({ partition: this.partition, what, fields: { session_id: this.sessionId, ...ids }, end });
  }

  /** Adds the end of a turn, a run, or a part of one, for traces, after the commit. */
  noteEnd(work: Omit<EndedWork, 'partition' | 'sessionId' | 'endedAtMs'>): void {
    const { partition, sessionId, atMs: endedAtMs } = this;
    this.ended.push({ partition, sessionId, endedAtMs, ...work });
  }

  openEffect(effect: Pick<EffectRow, 'id' | 'actorId' | 'kind' | 'inputs'>): void {
    const { partition, sessionId, atMs: createdAtMs } = this;
    this.effects.push({ state: 'open', partition, sessionId, createdAtMs, ...effect });
  }

  /** An effect of this command or an earlier one. */
  closeEffect(id: string, state: 'done' | 'superseded'): void {
    const { partition } = this;
    const own = this.effects.find((effect) => effect.id === id);
    if (own === undefined) this.closedEffects.push({ partition, id, state });
    else own.state = state;
    if (state === 'superseded') this.aborts.push({ partition, callId: id });
  }

  /** The command's id is the timer's key, so firing twice applies it once. */
  arm(key: string, dueAtMs: number, command: WithoutHeader<SessionCommand>, { isDerived = false }: TimerStorage = {}): void {
    const { sessionId, partition, atMs: sentAtMs } = this;
    const text = JSON.stringify({ v: 1, sessionId, commandId: key, sentAtMs, answerTo: null, traceparent: this.command.traceparent, ...command });
    this.timers.push({ partition, key, dueAtMs, command: text, isDerived });
  }

  disarm(key: string, { isDerived = false }: TimerStorage = {}): void {
    this.timers.push({ partition: this.partition, key, dueAtMs: null, isDerived });
  }

  /** For events of a command outside turns and runs. */
  ownTraceId(): string {
    this.#ownTrace ??= 'traceId' in this.command ? this.command.traceId : this.inputs.newTraceId();
    return this.#ownTrace;
  }

  #advance(kind: ActorKind<CommandPlan<Inputs>>, before: ActorState, event: { type: string }): void {
    const { machine } = kind;
    const [next, actions] = transition(machine, machine.resolveState(before), event);
    this.#enter(kind, before, before, next, actions, event);
  }

  #enter(
    kind: ActorKind<CommandPlan<Inputs>>,
    before: ActorState | null,
    kept: object | null,
    next: AnyMachineSnapshot,
    actions: readonly { type: string; params?: unknown }[],
    event: { type: string } | null,
  ): void {
    // Not a spread: with the time of a turn's start each first state would have a hidden class of its own (ADR 143).
    const state: ActorState = Object.assign({}, kept, { value: next.value as string, context: next.context as object });
    if (kind.snapshot !== null) this.#actors[kind.name] = state;
    for (const { type, params } of actions) {
      // XState adds its built-in actions, which our machines do not use.
      if (!Object.hasOwn(kind.handlers, type)) throw new TypeError(`there is no handler of the action '${type}'`);
      kind.handlers[type]?.(this, params as never);
    }
    kind.afterTransition?.(this, { before, event, state, isDone: next.status === 'done', hasActions: actions.length > 0 });
  }

  #kindOf(name: string): ActorKind<CommandPlan<Inputs>> {
    const kind = this.#kinds.get(name);
    if (kind === undefined) throw new TypeError(`there is no kind of actor '${name}'`);
    return kind;
  }
}
