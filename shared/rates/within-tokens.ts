import type { WorstCase } from '../credit/worst-case.ts';
import type { CallerKey } from '../keys/caller-key.ts';

/**
 * What a call counts for its key's tokens per minute: with a ceiling on its completion that the limit allows, where its own is higher. A call may ask for more
 * tokens than it uses, and would never be admitted.
 *
 * @param worst of the call as it is: what is returned where the limit allows it
 * @param worstCase of the call with a ceiling
 */
export function withinTokens(worst: WorstCase, { tokensPerMinute }: CallerKey['rates'], worstCase: (ceiling: number) => WorstCase): WorstCase {
  if (tokensPerMinute === null || worst.tokens <= tokensPerMinute) return worst;
  const promptTokens = worstCase(1).tokens - 1;
  return worstCase(Math.max(1, tokensPerMinute - promptTokens));
}
