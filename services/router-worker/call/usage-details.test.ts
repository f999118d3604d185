import { expect, it } from 'vitest';
import { usageDetailsOf } from './usage-details.ts';

const used = { promptTokens: 9, completionTokens: 8, cachedTokens: 1, reasoningTokens: 2 };

it('has the two counts that clients require, and none that the upstream does not report', () => {
  expect(usageDetailsOf(used)).toEqual({ prompt_tokens_details: { cached_tokens: 1 }, completion_tokens_details: { reasoning_tokens: 2 } });
});

it('has every count that the upstream reports, a count of 0 among them', () => {
  const all = { cacheWriteTokens: 0, promptAudioTokens: 1, promptVideoTokens: 2, completionAudioTokens: 3, completionImageTokens: 4 };
  expect(usageDetailsOf({ ...used, ...all, acceptedPredictionTokens: 5, rejectedPredictionTokens: 6 })).toEqual({
    prompt_tokens_details: { cached_tokens: 1, cache_write_tokens: 0, audio_tokens: 1, video_tokens: 2 },
    completion_tokens_details: { reasoning_tokens: 2, audio_tokens: 3, image_tokens: 4, accepted_prediction_tokens: 5, rejected_prediction_tokens: 6 },
  });
});
