import { EVALUATION_CALL_PREFIX, type RouterCall } from '#bus/messages/router.ts';
import { MODERATION_SURFACE } from '#shared/surfaces/surfaces.ts';

/** Whether a call asks for no model: its texts are moderated. */
export function isCheck({ surface }: Pick<RouterCall, 'surface'>): boolean {
  return surface === MODERATION_SURFACE;
}

/** Of a host that evaluates its documents: work in the background, of which there is one summary. */
export function isEvaluation({ callId }: Pick<RouterCall, 'callId'>): boolean {
  return callId.startsWith(`${EVALUATION_CALL_PREFIX}-`);
}
