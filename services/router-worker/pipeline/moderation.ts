import type { ChatMessage, ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { askedSearch } from '#shared/credit/web-searches.ts';
import { unavailable } from './engine-client.ts';
import { moderationRefusal } from './moderation/moderation-refusal.ts';
import type { PluginStage } from './stage.ts';

/** What a customer, an operator or a tool has written; the model's own words are no input. */
const MODERATED: ReadonlySet<string> = new Set(['system', 'developer', 'user', 'tool']);

/** Ends a call whose texts are flagged, before any provider has them. */
export const moderation: PluginStage = {
  request: async (staged, { engines: { moderation: moderator }, messagesField, modelOf, signal, report }) => {
    // Checked before: a call never passes for lack of an engine.
    if (moderator === null) throw unavailable('moderation', 'it is not configured');
    const flagged = await moderator.flaggedIn(textsOf(staged.request), signal, messagesField);
    report?.({ type: 'guardrail', name: 'moderation', summary: flagged === null ? 'passed' : 'flagged', data: { engine: moderator.name } });
    if (flagged === null) return staged;
    throw moderationRefusal('The input was flagged by moderation', {
      reasons: flagged.reasons,
      flaggedText: flagged.text,
      providerName: moderator.name,
      modelSlug: modelOf(staged.request),
    });
  },
};

/** All that a client can write in words, each once. Schemas are data, and the results of a search come later. */
function textsOf(request: ChatRequest): string[] {
  const { messages, tools = [], response_format: format, prediction } = request;
  const texts: (string | null | undefined)[] = messages.flatMap(({ role, name, content }) => [name, ...(MODERATED.has(role) ? textsIn(content) : [])]);
  for (const { function: tool } of tools) texts.push(tool.description);
  if (format?.type === 'json_schema') texts.push(format.json_schema.description);
  texts.push(...textsIn(prediction?.content), askedSearch(request)?.prompt);
  return [...new Set(texts)].filter((text) => typeof text === 'string').filter((text) => text.trim() !== '');
}

function textsIn(content: ChatMessage['content']): string[] {
  return typeof content === 'string' ? [content] : (content ?? []).flatMap((item) => (item.type === 'text' ? [item.text] : []));
}
