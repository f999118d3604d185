import type { ActorName, ActorState } from '../actor-kind.ts';
import type { DeliveryContext, DeliveryEvent } from './types.ts';

export interface DeliveryState extends ActorState {
  readonly value: 'opening' | 'posting' | 'waiting' | 'delivered' | 'dead';
  readonly context: DeliveryContext;
}

export const deliveryActor: ActorName<DeliveryState, DeliveryEvent> = { name: 'delivery' };
