import type { Usage } from '#shared/contracts/router/chat-completion.ts';
import type { ProviderUsage } from '#shared/contracts/router/provider-part.ts';

type Details = Required<Pick<Usage, 'prompt_tokens_details' | 'completion_tokens_details'>>;

/** Tokens by kind. Counts that the upstream does not report are left out: real clients throw on null. */
export function usageDetailsOf(used: ProviderUsage): Details {
  const { cacheWriteTokens, promptAudioTokens, promptVideoTokens } = used;
  const { completionAudioTokens, completionImageTokens, acceptedPredictionTokens, rejectedPredictionTokens } = used;
  return {
    prompt_tokens_details: {
      cached_tokens: used.cachedTokens,
      ...(cacheWriteTokens !== undefined && { cache_write_tokens: cacheWriteTokens }),
      ...(promptAudioTokens !== undefined && { audio_tokens: promptAudioTokens }),
      ...(promptVideoTokens !== undefined && { video_tokens: promptVideoTokens }),
    },
    completion_tokens_details: {
      reasoning_tokens: used.reasoningTokens,
      ...(completionAudioTokens !== undefined && { audio_tokens: completionAudioTokens }),
      ...(completionImageTokens !== undefined && { image_tokens: completionImageTokens }),
      ...(acceptedPredictionTokens !== undefined && { accepted_prediction_tokens: acceptedPredictionTokens }),
      ...(rejectedPredictionTokens !== undefined && { rejected_prediction_tokens: rejectedPredictionTokens }),
    },
  };
}
