import type { AnyStateMachine } from 'xstate';
import type { SessionCommand } from '#bus/messages/session.ts';
import type { CarriedContext } from '#shared/telemetry/carried-context.ts';

/** A machine's state, and what is stored beside it. */
export interface ActorState {
  readonly value: string;
  readonly context: object;
}

/** What is stored of a turn or run beside its machine. */
export interface ActorMetadata {
  /** 32 hex digits, on every event of the turn or run. */
  readonly traceId: string;
  /** The configuration, fixed at its start. */
  readonly bundleHash: string;
  readonly traceparent: string | null;
  /** What the caller of a turn sent beside it. Absent: nothing. */
  readonly carried?: CarriedContext;
  /** Absent from snapshots of earlier releases. */
  readonly startedAtMs?: number | undefined;
}

/** Names a kind of actor, with the types of its state and events. */
export interface ActorName<State extends ActorState, Event> {
  /** Stored as the key of its state in snapshots. */
  readonly name: string;
  /** For types alone; never set. */
  readonly types?: { state: State; event: Event };
}

/** One kind of actor: its machine, and all that the runtime needs to know of it. A new one is a folder and a row of registry.ts. */
export interface ActorKind<Plan> {
  readonly name: string;
  readonly machine: AnyStateMachine;
  /** Its part of a session's snapshot; null: its state follows from rows, and no snapshot holds it. */
  readonly snapshot: SnapshotPart | null;
  /** Its state in a session that has none of it yet; null: none is in progress. */
  readonly initial: ActorState | null;
  /** Executes each action of its machine. */
  readonly handlers: { readonly [action: string]: ActionHandler<Plan> };
  /** After each of its transitions, whose actions are executed. */
  afterTransition?(plan: Plan, transition: ActorTransition): void;
  /** Whether commands of this type go to it first. */
  receives?(command: SessionCommand): boolean;
  receive?(plan: Plan): void;
  /** After each command, whose events are known. */
  afterCommand?(plan: Plan): void;
  /** Ends what is in progress after a command that could not be applied. */
  fail?(plan: Plan): void;
}

/** Of a machine's states in snapshots. */
export interface SnapshotPart {
  /** 1 to 99. Raise it with each change that stored states do not fit. */
  readonly version: number;
  /** What one version adds to the version of all machines: a power of a hundred, of its own. */
  readonly place: number;
  /** From a version to the next: makes older states fit. */
  readonly migrations: ReadonlyMap<number, (state: ActorState) => ActorState>;
}

/** Written as a method, so that a kind may narrow both. */
type ActionHandler<Plan> = { handle(plan: Plan, params: never): void }['handle'];

export interface ActorTransition {
  /** Null at its start. */
  before: ActorState | null;
  /** Null at its start. */
  event: { type: string } | null;
  state: ActorState;
  /** In a final state. */
  isDone: boolean;
  hasActions: boolean;
}

/** By name. */
export type ActorKinds<Plan> = ReadonlyMap<string, ActorKind<Plan>>;
