import { actorFields } from '#bus/messages/actor-fields.ts';
import type { ActorKind } from '../actor-kind.ts';
import { endSession } from '../event-webhook/end-session.ts';
import { type Handlers, openEffect, type Plan } from '../plan.ts';
import { sessionActor } from '../session/actor.ts';
import { deliveryActor } from './actor.ts';
import { eventOf, isDeliveryCommand } from './delivery-command.ts';
import { deliveryMachine } from './machine.ts';
import { stateOf } from './state-of.ts';
import type { DeliveryActions } from './types.ts';

const handlers: Handlers<DeliveryActions> = {
  effect: (plan, { deliveryId: actorId, traceparent, ...request }) => {
    openEffect(plan, deliveryActor.name, request, { id: request.id, actorId, bundleHash: '', traceparent });
    notifySession(plan, { type: 'delivery.opened', deliveryId: actorId });
  },
  close: (plan, { id, state }) => plan.closeEffect(id, state),
  timer: (plan, { key, atMs, deliveryId, command }) => {
    plan.arm(key, atMs, command === 'delivery.due' ? { type: command, deliveryId } : { ...command, ...actorFields(deliveryId) });
  },
  disarm: (plan, { key }) => plan.disarm(key),
  settle: (plan, { deliveryId: id, ...end }) => {
    const { partition } = plan;
    plan.deliveryEnds.push({ partition, id, state: end.state });
    if (end.state === 'dead') plan.deadLetters.push({ partition, id, source: 'delivery', reason: end.reason ?? 'it failed too often', body: '' });
    notifySession(plan, { type: 'delivery.settled', deliveryId: id });
    endSession(plan);
  },
};

/** An ephemeral session counts its open deliveries. For others it would be one transition more in each round. */
function notifySession(plan: Plan, event: { type: 'delivery.opened' | 'delivery.settled'; deliveryId: string }): void {
  if (plan.stateOf(sessionActor)?.context.ephemeral) plan.send(sessionActor, event);
}

export const deliveryKind: ActorKind<Plan> = {
  name: deliveryActor.name,
  machine: deliveryMachine,
  snapshot: null,
  initial: null,
  handlers,
  receives: isDeliveryCommand,
  receive(plan) {
    const { command } = plan;
    const event = isDeliveryCommand(command) ? eventOf(plan, command) : null;
    if (isDeliveryCommand(command) && event !== null) plan.sendTo(deliveryActor, stateOf(plan, command), event);
  },
};
