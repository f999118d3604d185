import { agentApiKey } from '#shared/config/load-bundle.ts';
import type { EffectKindDeps, EffectKindRow } from '../effect-kind.ts';
import { deliveryItems } from './delivery-items.ts';

export const DELIVERY_CONCURRENCY = 256;
/** Of one attempt. */
const TIMEOUT_MS = 10_000;

/** Posts callbacks, and events of sessions with an event webhook. */
export const deliveryKind = {
  name: 'delivery',
  async open({ timeouts, concurrency, maxDeliveryAttempts: maxAttempts, ...deps }: EffectKindDeps) {
    const newest = await deps.bundles.newest(); // no fail point: reads
    // Fails at the start rather than at the first callback.
    if (newest !== null) agentApiKey(newest, deps.environment);
    const { deliveryMs: timeoutMs = TIMEOUT_MS } = timeouts;
    return { items: deliveryItems({ ...deps, maxAttempts, timeoutMs, concurrency: concurrency ?? DELIVERY_CONCURRENCY }), close: async () => {} };
  },
} as const satisfies EffectKindRow;
