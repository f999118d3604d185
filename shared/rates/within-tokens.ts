import type { WorstCase } from '../credit/worst-case.ts';
import type { CallerKey } from '../keys/caller-key.ts';

/**
 * What a call counts for its key's tokens per minute: with a ceiling on its completion that the limit allows, where its own is higher. A call may ask for more
 * tokens than it uses, and would never be admitted.
 *
 * @param worstCase of the call with that ceiling; null: without one
 */
export function withinTokens(maxTokens: number | null, { tokensPerMinute }: CallerKey['rates'], worstCase: (maxTokens: number | null) => WorstCase): WorstCase {
  const worst = worstCase(maxTokens);
  if (tokensPerMinute === null || worst.tokens <= tokensPerMinute) return worst;
  const promptTokens = worstCase(1).tokens - 1;
  return worstCase(Math.max(1, tokensPerMinute - promptTokens));
}
