import type { ChatPlugin, ChatRequest } from '../../contracts/router/chat-request.ts';
import type { EmbeddingCall } from '../../contracts/router/embedding-call.ts';
import { type EmbeddingInput, type EmbeddingRequest, inputsIn } from '../../contracts/router/embedding-request.ts';
import { appliesToVectors } from '../../contracts/router/plugins.ts';

type Message = ChatRequest['messages'][number];

const NO_TEXT: Message = { role: 'user', content: '' };

export function toModelRequest({ model, input, user, provider, plugins, session_id: sessionId, metadata }: EmbeddingRequest): ChatRequest {
  return {
    model,
    messages: tokensIn(input) === null ? inputsIn(input).map(messageOf) : [NO_TEXT],
    ...(provider && { provider }),
    ...(typeof user === 'string' && { user }),
    ...(plugins?.some(appliesToVectors) && { plugins: plugins.map(ofVectors) }),
    ...(sessionId !== undefined && { session_id: sessionId }),
    ...(metadata !== undefined && { metadata }),
  };
}

/** One without a meaning for vectors is off: errors name the places of the others. */
function ofVectors(plugin: ChatPlugin): ChatPlugin {
  return appliesToVectors(plugin) ? plugin : { id: plugin.id, enabled: false };
}

export function toEmbeddingCall({ input, encoding_format: format, dimensions, input_type: inputType }: EmbeddingRequest): EmbeddingCall {
  return { format: format ?? 'float', dimensions: dimensions ?? null, inputType: inputType ?? null, tokens: tokensIn(input) };
}

/** Null: the inputs are texts or content. All are of one kind. */
function tokensIn(input: EmbeddingRequest['input']): number[][] | null {
  const lists = inputsIn(input).filter((one) => Array.isArray(one));
  return lists.length === 0 ? null : lists;
}

function messageOf(input: EmbeddingInput): Message {
  if (typeof input === 'string') return { role: 'user', content: input };
  return { role: 'user', content: 'content' in input ? input.content : '' };
}
