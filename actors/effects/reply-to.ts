import { actorFields } from '#bus/messages/actor-fields.ts';
import type { RouterCall } from '#bus/messages/router.ts';
import type { EffectRow } from './effect-row.ts';
import type { RenderDeps } from './render-deps.ts';

/** Address of a model call's result, with the request's epoch. */
export function replyTo({ sessionId, actorId, partition }: EffectRow, { epochOf }: Pick<RenderDeps, 'epochOf'>): NonNullable<RouterCall['reply']> {
  return { sessionId, ...actorFields(actorId), epoch: epochOf(partition) };
}
