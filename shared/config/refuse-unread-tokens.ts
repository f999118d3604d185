import type { ChatRequest } from '../contracts/router/chat-request.ts';
import type { EmbeddingCall } from '../contracts/router/embedding-call.ts';
import { isEnabled } from '../contracts/router/plugins.ts';
import { SwitchyardError } from '../errors/switchyard-error.ts';

/** @throws `request.invalid` for token ids where moderation applies: only the model knows their text, and none passes unread */
export function refuseUnreadTokens({ plugins = [] }: Pick<ChatRequest, 'plugins'>, { tokens }: Pick<EmbeddingCall, 'tokens'>): void {
  if (tokens === null || !plugins.some((plugin) => plugin.id === 'moderation' && isEnabled(plugin))) return;
  throw new SwitchyardError('request.invalid', "input has token ids, which the moderation of this request can't read: send texts", {
    details: { param: 'input' },
  });
}
