import type { ChatRequest } from './chat-request.ts';

/**
 * Fast path for the usual request: text messages of the usual roles, a model, a few parameters. Accepts only what the schema accepts
 * unchanged, which takes ten times as long and handles all else.
 */
export function isPlainChatRequest(value: unknown): value is ChatRequest {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  let hasMessages = false;
  for (const name in value) {
    const field: unknown = value[name as keyof typeof value];
    switch (name) {
      case 'messages':
        if (!Array.isArray(field) || field.length === 0 || !field.every(isPlainMessage)) return false;
        hasMessages = true;
        break;
      case 'model':
        if (typeof field !== 'string' || field === '') return false;
        break;
      case 'stream':
        if (typeof field !== 'boolean') return false;
        break;
      case 'user':
        if (typeof field !== 'string') return false;
        break;
      case 'max_tokens':
      case 'max_completion_tokens':
        if (!Number.isSafeInteger(field) || Number(field) < 1) return false;
        break;
      case 'temperature':
        if (typeof field !== 'number' || !(field >= 0 && field <= 2)) return false;
        break;
      default:
        return false;
    }
  }
  return hasMessages;
}

/** Only a role and a text. */
function isPlainMessage(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  let fields = 0;
  for (const name in value) {
    const field: unknown = value[name as keyof typeof value];
    if (name === 'role') {
      if (field !== 'user' && field !== 'system' && field !== 'assistant' && field !== 'developer') return false;
    } else if (name !== 'content' || typeof field !== 'string') return false;
    fields += 1;
  }
  return fields === 2;
}
