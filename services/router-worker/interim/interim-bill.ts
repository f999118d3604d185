import type { UsageRecord } from '#bus/messages/usage.ts';
import { usdOfNano } from '#shared/credit/nano-usd.ts';
import type { Bill } from '../call/usage.ts';
import { usageDetailsOf } from '../call/usage-details.ts';

/** What a call had used at its interim record, as its answer states it. */
export function interimBill({ tokens, costNano, estimated }: UsageRecord): Bill {
  const { prompt, completion, cached, reasoning, cacheWrite } = tokens;
  const used = { promptTokens: prompt, completionTokens: completion, cachedTokens: cached, reasoningTokens: reasoning };
  return {
    usage: {
      prompt_tokens: prompt,
      completion_tokens: completion,
      total_tokens: prompt + completion,
      ...usageDetailsOf(cacheWrite === 0 ? used : { ...used, cacheWriteTokens: cacheWrite }),
      is_byok: false,
      cost: usdOfNano(costNano),
    },
    costNano,
    isEstimated: estimated,
  };
}
