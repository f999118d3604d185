import { z } from 'zod';
import type { DeliveryWork } from '#bus/messages/delivery.ts';
import type { CommandOf } from '#bus/messages/session.ts';
import { commonInputs, type EffectKind } from './effect-kind.ts';

const inputs = z.object({ ...commonInputs, deliveryId: z.string() });

/** One round of a delivery: at most one try by a worker. */
export const delivery: EffectKind<z.infer<typeof inputs>, { deadlineAtMs: number }, null, CommandOf<'delivery.reported' | 'effect.overdue'>> = {
  name: 'delivery',
  actor: 'delivery',
  request: 'delivery',
  work: 'delivery',
  inputs,
  inputsOf: ({ deadlineAtMs }, { actorId: deliveryId, traceparent }) => ({ deliveryId, deadlineAtMs, traceparent }),
  render({ id: effectId, sessionId, createdAtMs, inputs: { deliveryId, deadlineAtMs, traceparent } }, republished): DeliveryWork {
    return { v: 1, effectId, deliveryId, sessionId, deadlineAtMs, createdAtMs, republished, traceparent };
  },
  results: { 'delivery.reported': (command) => command },
  overdue: (command) => command,
};
