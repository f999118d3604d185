import type { RouterErrorBody } from '../../contracts/router/chat-completion.ts';
import type { ResponseErrorCode } from '../../contracts/router/response-object.ts';

type RouterError = RouterErrorBody['error'];

/** What this API states as an answer that was cut off for its length (contract, "Responses-style endpoint errors"). */
const LENGTH_TYPES: ReadonlySet<unknown> = new Set(['context_length_exceeded', 'max_tokens_exceeded', 'token_limit_exceeded', 'string_too_long']);

const CODES: Readonly<Record<string, ResponseErrorCode>> = {
  rate_limit_exceeded: 'rate_limit_exceeded',
  context_length_exceeded: 'invalid_prompt',
  invalid_request: 'invalid_prompt',
  content_policy_violation: 'image_content_policy_violation',
};

/** By our type of the error, or by the provider's own. */
export function endsForLength({ type, metadata }: RouterError): boolean {
  return LENGTH_TYPES.has(type) || LENGTH_TYPES.has(metadata?.provider_code);
}

export function errorFieldOf({ type, message }: RouterError): { code: ResponseErrorCode; message: string } {
  return { code: CODES[type] ?? 'server_error', message };
}
