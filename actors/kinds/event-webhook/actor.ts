import type { ActorName, ActorState } from '../actor-kind.ts';
import type { EventWebhookContext, EventWebhookEvent } from './types.ts';

interface EventWebhookState extends ActorState {
  readonly context: EventWebhookContext;
}

export const eventWebhookActor: ActorName<EventWebhookState, EventWebhookEvent> = { name: 'eventWebhook' };
