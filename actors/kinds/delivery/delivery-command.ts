import type { CommandOf, SessionCommand } from '#bus/messages/session.ts';
import { delivery } from '../../effects/delivery.ts';
import type { Plan } from '../plan.ts';
import type { DeliveryEvent } from './types.ts';

export type DeliveryCommand = CommandOf<'delivery.reported' | 'delivery.due' | 'effect.overdue'>;

/** They bypass the session's machine: deliveries go on in any state, and dead ones can be replayed after the session. */
export function isDeliveryCommand(command: SessionCommand): command is DeliveryCommand {
  return command.type === 'delivery.reported' || command.type === 'delivery.due' || (command.type === 'effect.overdue' && command.kind === delivery.name);
}

export function eventOf({ atMs, inputs }: Plan, command: DeliveryCommand): DeliveryEvent {
  switch (command.type) {
    case 'delivery.due':
      return { type: 'retry.due', atMs, nextRoundId: `${command.deliveryId}-${inputs.newId()}` };
    case 'effect.overdue':
      return { type: 'round.overdue', atMs, roundId: command.callId, nextRoundId: `${command.actorId}-${inputs.newId()}` };
    case 'delivery.reported': {
      const { callId: roundId, outcome, attempts, reason, retryAfterMs } = command;
      if (outcome === 'failed') return { type: 'round.failed', atMs, roundId, attempts, retryAfterMs, chance: inputs.chance() };
      return outcome === 'delivered' ? { type: 'round.delivered', atMs, roundId } : { type: 'round.exhausted', atMs, roundId, reason };
    }
  }
}
