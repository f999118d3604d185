import { z } from 'zod';
import { EVENT_WORK_VERSION, type EventWork } from '#bus/messages/event-delivery.ts';
import type { EventWebhookActions, EventWebhookEvent, Scene } from '../kinds/event-webhook/types.ts';
import { commonInputs, type EffectKind } from './effect-kind.ts';

const inputs = z.object({
  ...commonInputs,
  bundleHash: z.string(),
  url: z.string(),
  /** Null: all. */
  kinds: z.array(z.string()).readonly().nullable(),
  fromOffset: z.number(),
  /** Exclusive. */
  toOffset: z.number(),
  attempts: z.number(),
  waitingSinceMs: z.number().nullable(),
});

/** What a report needs to become an event. */
export interface EventDeliveryScope {
  scene: Scene;
  maxAttempts: number;
  chance(): number;
}

/** One round of an event webhook. */
export const eventDelivery: EffectKind<z.infer<typeof inputs>, EventWebhookActions['effect'], EventDeliveryScope, EventWebhookEvent> = {
  name: 'event-delivery',
  actor: 'eventWebhook',
  request: 'event-delivery',
  work: 'delivery',
  inputs,
  inputsOf: ({ deadlineAtMs, url, kinds, fromOffset, toOffset, attempts, waitingSinceMs }, { bundleHash, traceparent }) => ({
    bundleHash,
    url,
    kinds,
    fromOffset,
    toOffset,
    attempts,
    waitingSinceMs,
    deadlineAtMs,
    traceparent,
  }),
  render({ id: effectId, sessionId, createdAtMs, inputs: { kinds, ...given } }, republished): EventWork {
    return { v: EVENT_WORK_VERSION, type: 'events', effectId, sessionId, createdAtMs, republished, kinds: kinds === null ? null : [...kinds], ...given };
  },
  results: {
    'event-webhook.reported': ({ callId: roundId, outcome, nextOffset, reason, retryAfterMs }, { scene, maxAttempts, chance }) => {
      if (outcome === 'posted') return { type: 'round.posted', scene, roundId, nextOffset };
      const pause = { retryAfterMs, chance: chance() };
      if (outcome === 'postponed') return { type: 'round.postponed', scene, roundId, nextOffset, ...pause };
      return { type: 'round.failed', scene, roundId, nextOffset, maxAttempts, reason, ...pause };
    },
  },
  overdue: ({ callId: roundId }, { scene }) => ({ type: 'round.overdue', scene, roundId }),
};
