import type { ProviderUsage } from '#shared/contracts/router/provider-part.ts';
import type { UpstreamUsage } from './chunk.ts';

/** @param countsReasoningApart whether `completion_tokens` are without the reasoning tokens */
export function toUsage(usage: UpstreamUsage, countsReasoningApart: boolean): ProviderUsage {
  const { prompt_tokens_details: prompt, completion_tokens_details: completion } = usage;
  const reasoningTokens = completion?.reasoning_tokens ?? 0;
  return {
    promptTokens: usage.prompt_tokens,
    completionTokens: (usage.completion_tokens ?? 0) + (countsReasoningApart ? reasoningTokens : 0),
    cachedTokens: prompt?.cached_tokens ?? usage.prompt_cache_hit_tokens ?? 0,
    reasoningTokens,
    ...counts({
      cacheWriteTokens: prompt?.cache_write_tokens,
      promptAudioTokens: prompt?.audio_tokens,
      promptVideoTokens: prompt?.video_tokens,
      completionAudioTokens: completion?.audio_tokens,
      completionImageTokens: completion?.image_tokens,
      acceptedPredictionTokens: completion?.accepted_prediction_tokens,
      rejectedPredictionTokens: completion?.rejected_prediction_tokens,
    }),
  };
}

/** Those that the upstream reports. */
function counts<Name extends string>(named: Record<Name, number | null | undefined>): Partial<Record<Name, number>> {
  const reported: Partial<Record<Name, number>> = {};
  for (const name in named) {
    const count = named[name];
    if (typeof count === 'number') reported[name] = count;
  }
  return reported;
}
