import type { EndpointConfig } from '#shared/config/router-config.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { PromptSize } from '#shared/credit/prompt-size.ts';
import { askedTokens } from './expected-price.ts';
import { type Exclusions, type ModelEndpoint, passes } from './model-endpoint.ts';

/**
 * Excludes endpoints that are too small for the prompt and the completion that is asked for. Of the prompt only text is counted, and with few tokens: an endpoint
 * that may be large enough is asked, since a refusal falls back to larger ones, while an exclusion could leave none.
 * @param size called when a context length is known
 */
export function fittingContext(request: ChatRequest, all: readonly ModelEndpoint[], size: () => PromptSize, exclusions: Exclusions): readonly ModelEndpoint[] {
  const asked = askedTokens(request) ?? 0;
  return all.filter((modelEndpoint) => passes(modelEndpoint, fits(modelEndpoint.endpoint, asked, size), 'context_length', exclusions));
}

function fits(
  { max_completion_tokens: most = Number.POSITIVE_INFINITY, context_length: context }: EndpointConfig,
  asked: number,
  size: () => PromptSize,
): boolean {
  return asked <= most && (context === undefined || Math.max(1, size().leastTextTokens) + asked <= context);
}
