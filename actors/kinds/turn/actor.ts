import type { ActorMetadata, ActorName, ActorState } from '../actor-kind.ts';
import type { TurnContext, TurnEvent } from './types.ts';

interface TurnState extends ActorState, ActorMetadata {
  readonly context: TurnContext;
}

export const turnActor: ActorName<TurnState, TurnEvent> = { name: 'turn' };
