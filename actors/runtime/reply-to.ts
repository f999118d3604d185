import type { RouterCall } from '#bus/messages/router.ts';
import type { EffectRow } from './effects.ts';
import type { RenderDeps } from './render-deps.ts';

/** Where the result of a model call goes, and under which epoch it was asked for. */
export function replyTo({ sessionId, turnId, partition }: EffectRow, { epochOf }: Pick<RenderDeps, 'epochOf'>): NonNullable<RouterCall['reply']> {
  return { sessionId, turnId, epoch: epochOf(partition) };
}
