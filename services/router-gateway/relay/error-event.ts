import type { ErrorChunk } from '#shared/contracts/router/chat-completion.ts';
import type { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { errorReply } from '../plugins/error-reply.ts';

const PROVIDER = 'switchyard';

/** The SSE event that ends a stream after its headers; nothing may follow, not even `[DONE]`. */
export function errorEvent(callId: string, model: string, nowMs: number, error: SwitchyardError): string {
  const { code, message, type, metadata } = errorReply(error).body.error;
  const chunk: ErrorChunk = {
    id: callId,
    object: 'chat.completion.chunk',
    created: Math.floor(nowMs / 1_000),
    model,
    provider: PROVIDER,
    error: { code, message, metadata: { error_type: type, ...metadata } },
    choices: [{ index: 0, delta: { content: '' }, finish_reason: 'error' }],
  };
  return `data: ${JSON.stringify(chunk)}\n\n`;
}
