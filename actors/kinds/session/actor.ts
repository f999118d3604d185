import type { ActorName, ActorState } from '../actor-kind.ts';
import type { SessionContext, SessionEvent } from './types.ts';

interface SessionMachineState extends ActorState {
  readonly context: SessionContext;
}

export const sessionActor: ActorName<SessionMachineState, SessionEvent> = { name: 'session' };
