import type { ErrorChunk, RouterErrorBody } from '../../contracts/router/chat-completion.ts';
import type { EventHead } from '../surface.ts';

/** The last chunk of a failed stream. */
export function errorChunkOf({ error, openrouter_metadata }: RouterErrorBody, { id, created, model, provider }: EventHead): ErrorChunk {
  const metadata = { error_type: error.type, ...error.metadata };
  return {
    id,
    object: 'chat.completion.chunk',
    created,
    model,
    provider,
    error: { code: error.code, message: error.message, metadata },
    choices: [{ index: 0, delta: { content: '' }, finish_reason: 'error' }],
    ...(openrouter_metadata !== undefined && { openrouter_metadata }),
  };
}
