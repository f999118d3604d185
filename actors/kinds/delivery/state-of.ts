import type { Plan } from '../plan.ts';
import type { DeliveryState } from './actor.ts';
import type { DeliveryCommand } from './delivery-command.ts';

/**
 * The state in which a command finds its delivery. No snapshot holds it: rows, timers and the ids of effects say as much, also those of earlier
 * releases. A retry's timer is armed only while none is posted, and the timer of an overdue round only while that round is open.
 */
export function stateOf(plan: Plan, command: DeliveryCommand): DeliveryState {
  const { earlier, inputs } = plan;
  const deliveryId = command.type === 'effect.overdue' ? command.actorId : command.deliveryId;
  const { traceparent } = command;
  const end = earlier.deliveryStates.get(deliveryId);
  if (end !== undefined) return { value: end.state, context: { deliveryId, traceparent, roundId: null } };
  if (command.type === 'delivery.due') return { value: 'waiting', context: { deliveryId, traceparent, roundId: null } };
  const { callId } = command;
  // A report of the end counts whether its round was superseded or not: only a failure's is read.
  const isClosed = earlier.isClosed(callId) || (command.type === 'delivery.reported' && inputs.isSuperseded(callId));
  return { value: 'posting', context: { deliveryId, traceparent, roundId: isClosed ? null : callId } };
}
