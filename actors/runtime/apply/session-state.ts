import type { SessionRecord } from '#shared/contracts/agent/session.ts';
import type { ActorName, ActorState } from '../../kinds/actor-kind.ts';

/** A session in its owner's memory, between commands. Immutable. */
export interface SessionState {
  readonly id: string;
  readonly partition: number;
  /** Number of events, so the next offset. */
  readonly head: number;
  readonly record: SessionRecord;
  /** By kind. Null: none is in progress. */
  readonly actors: ActorStates;
  readonly isDeleted: boolean;
}

export type ActorStates = { readonly [kind: string]: ActorState | null };

/** Null: none is in progress. */
export function stateIn<State extends ActorState, Event>({ actors }: Pick<SessionState, 'actors'>, { name }: ActorName<State, Event>): State | null {
  return (actors[name] ?? null) as State | null;
}
