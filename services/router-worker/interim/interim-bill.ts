import type { UsageRecord } from '#bus/messages/usage.ts';
import type { EndpointConfig } from '#shared/config/router-config.ts';
import type { Usage } from '#shared/contracts/router/chat-completion.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { usdOfNano } from '#shared/credit/nano-usd.ts';
import { type Bill, billedPrices, costOfCompletion } from '../call/usage.ts';
import { usageDetailsOf } from '../call/usage-details.ts';
import type { RouterSearch } from '../pipeline/stage.ts';

/**
 * What a call had used at its interim record, as its answer states it, and what its frames have of the completion beyond that.
 * @param shown null: no frame is retained
 * @param at the endpoint, with what it was asked for. `prices` undefined: more of the completion costs nothing
 */
export function interimBill(record: UsageRecord, shown: Usage | null, at: { request: ChatRequest; prices: EndpointConfig['prices'] }): Bill {
  const { tokens, costNano: atRecord, estimated, searches, serviceTier } = record;
  const { prompt, cached, cacheWrite, cacheWrite1h } = tokens;
  const completion = Math.max(tokens.completion, shown?.completion_tokens ?? 0);
  const reasoning = Math.max(tokens.reasoning, shown?.completion_tokens_details?.reasoning_tokens ?? 0);
  const more = completion - tokens.completion;
  const { request, prices } = at;
  const costNano = atRecord + (prices === undefined ? 0 : costOfCompletion(more, billedPrices(serviceTier, request, prices)));
  const used = { promptTokens: prompt, completionTokens: completion, cachedTokens: cached, reasoningTokens: reasoning };
  return {
    usage: {
      prompt_tokens: prompt,
      completion_tokens: completion,
      total_tokens: prompt + completion,
      ...usageDetailsOf(cacheWrite === 0 ? used : { ...used, cacheWriteTokens: cacheWrite }),
      is_byok: false,
      cost: usdOfNano(costNano),
      ...(searches !== undefined && { server_tool_use: { web_search_requests: searches }, server_tool_use_details: { web_search_requests: searches } }),
    },
    costNano,
    isEstimated: estimated || more > 0,
    ...(cacheWrite1h !== undefined && { cacheWrite1hTokens: cacheWrite1h }),
  };
}

/** What made the searches of an interim record; absent: there were none, or it is not known. */
export function interimSearch({ searchEngine: engine, searchResults: results = 0 }: UsageRecord): { search?: RouterSearch | null } {
  if (engine === undefined) return {};
  return { search: engine === 'native' ? null : { engine, results } };
}
