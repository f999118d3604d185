import type { RouterCall } from '#bus/messages/router.ts';
import { MODERATION_SURFACE } from '#shared/surfaces/surfaces.ts';

/** Whether a call asks for no model: its texts are moderated. */
export function isCheck({ surface }: Pick<RouterCall, 'surface'>): boolean {
  return surface === MODERATION_SURFACE;
}
