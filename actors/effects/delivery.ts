import { z } from 'zod';
import type { DeliveryWork } from '#bus/messages/delivery.ts';
import type { DeliveryEvent } from '../kinds/delivery/types.ts';
import { commonInputs, type EffectKind } from './effect-kind.ts';

const inputs = z.object({ ...commonInputs, deliveryId: z.string() });

/** What a report needs to become an event. */
export interface DeliveryScope {
  atMs: number;
  /** A ULID of this time. */
  newId(atMs: number): string;
  chance(): number;
}

/** One round of a delivery: at most one try by a worker. */
export const delivery: EffectKind<z.infer<typeof inputs>, { deadlineAtMs: number }, DeliveryScope, DeliveryEvent> = {
  name: 'delivery',
  actor: 'delivery',
  request: 'delivery',
  work: 'delivery',
  inputs,
  inputsOf: ({ deadlineAtMs }, { actorId: deliveryId, traceparent }) => ({ deliveryId, deadlineAtMs, traceparent }),
  render({ id: effectId, sessionId, createdAtMs, inputs: { deliveryId, deadlineAtMs, traceparent } }, republished): DeliveryWork {
    return { v: 1, effectId, deliveryId, sessionId, deadlineAtMs, createdAtMs, republished, traceparent };
  },
  results: {
    'delivery.reported': ({ callId: roundId, outcome, attempts, reason, retryAfterMs }, { atMs, chance }) => {
      if (outcome === 'failed') return { type: 'round.failed', atMs, roundId, attempts, retryAfterMs, chance: chance() };
      return outcome === 'delivered' ? { type: 'round.delivered', atMs, roundId } : { type: 'round.exhausted', atMs, roundId, reason };
    },
  },
  overdue: ({ callId: roundId, actorId }, { atMs, newId }) => ({ type: 'round.overdue', atMs, roundId, nextRoundId: `${actorId}-${newId(atMs)}` }),
};
