import type { CommandOf, SessionCommand } from '#bus/messages/session.ts';
import { type DeliveryScope, delivery } from '../../effects/delivery.ts';
import { effects } from '../../effects/registry.ts';
import type { Plan } from '../plan.ts';
import type { DeliveryEvent } from './types.ts';

export type DeliveryCommand = CommandOf<'delivery.reported' | 'delivery.due' | 'effect.overdue'>;

/** They bypass the session's machine: deliveries go on in any state, and dead ones can be replayed after the session. */
export function isDeliveryCommand(command: SessionCommand): command is DeliveryCommand {
  return command.type === 'delivery.reported' || command.type === 'delivery.due' || (command.type === 'effect.overdue' && command.kind === delivery.name);
}

/** Null when it is none of a delivery's. */
export function eventOf({ atMs, inputs: { newId, chance } }: Plan, command: DeliveryCommand): DeliveryEvent | null {
  if (command.type === 'delivery.due') return { type: 'retry.due', atMs, nextRoundId: `${command.deliveryId}-${newId(atMs)}` };
  return effects.eventOf<DeliveryScope, DeliveryEvent>(delivery.actor, command, { atMs, newId, chance });
}
