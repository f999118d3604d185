import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Candidate } from '../call/candidates.ts';
import { moderationRefusal } from './moderation/moderation-refusal.ts';

/** A provider's own refusal of the input in the form of the plugin's. Any other error is returned as it is. It does not say which text: the last one is quoted. */
export function providerRefusal(error: unknown, { model, provider }: Candidate, request: ChatRequest): unknown {
  if (!(error instanceof SwitchyardError) || error.code !== 'router.content_policy') return error;
  const { providerCode } = error.details;
  return moderationRefusal(
    error.message,
    {
      reasons: [typeof providerCode === 'string' ? providerCode : 'content_policy'],
      flaggedText: lastUserText(request),
      providerName: provider.name,
      modelSlug: model.id,
    },
    error,
  );
}

/** Empty: there is none. */
function lastUserText({ messages }: ChatRequest): string {
  const content = messages.findLast(({ role }) => role === 'user')?.content ?? '';
  if (typeof content === 'string') return content;
  return content.map((item) => (item.type === 'text' ? item.text : '')).join('');
}
