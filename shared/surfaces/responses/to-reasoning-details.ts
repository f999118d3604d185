import type { ReasoningDetail } from '../../contracts/router/chat-completion.ts';
import type { ReasoningInput } from '../../contracts/router/responses-input.ts';
import { upstreamIdOf } from './item-ids.ts';

/** Of an item of other services, which state no dialect: only OpenAI's has encrypted content. */
const OPENAI_FORMAT = 'openai-responses-v1';
const UNKNOWN_FORMAT = 'unknown';

/** An item of reasoning as the details that a chat sends back. @param from the index of the first */
export function toReasoningDetails(item: ReasoningInput, from: number): ReasoningDetail[] {
  const { summary, content, encrypted_content: encrypted, signature, format } = item;
  const id = upstreamIdOf(item.id);
  const names = { ...(id !== null && { id }), index: from, format: format ?? (encrypted ? OPENAI_FORMAT : UNKNOWN_FORMAT) };
  const summed = (summary ?? []).map(({ text }) => text).join('\n\n');
  const thought = (content ?? []).map(({ text }) => text).join('');
  const details: ReasoningDetail[] = [];
  if (summed !== '') details.push({ type: 'reasoning.summary', summary: summed, ...names });
  if (thought !== '' || signature)
    details.push({ type: 'reasoning.text', ...(thought !== '' && { text: thought }), ...(signature && { signature }), ...names });
  if (encrypted) details.push({ type: 'reasoning.encrypted', data: encrypted, ...names });
  return details;
}
