import type { EventWebhookAddress } from '../../inputs/actor-inputs.ts';
import type { EventWebhookContext, Scene } from './types.ts';

/** Where the session's events go now; null: nowhere. */
export function addressOf({ isOn, url }: EventWebhookContext, deployment: EventWebhookAddress | null): EventWebhookAddress | null {
  if (!isOn) return null;
  return url === null ? deployment : { url, kinds: null };
}

/** Whether events wait to be posted. */
export function isBehind(context: EventWebhookContext, { head, deployment }: Pick<Scene, 'head' | 'deployment'>): boolean {
  return context.cursor < head && addressOf(context, deployment) !== null;
}
