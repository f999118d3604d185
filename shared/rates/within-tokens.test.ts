import { expect, it } from 'vitest';
import { withinTokens } from './within-tokens.ts';

it.each([
  [{ tokensPerMinute: null }, 100_000, 100_010],
  [{ tokensPerMinute: 200_000 }, 100_000, 100_010],
  [{ tokensPerMinute: 1_000 }, 990, 1_000],
  [{ tokensPerMinute: 5 }, 1, 11],
])('a key with %j gives a call of 10 tokens that asks for 100,000 a ceiling of %i, and counts %i', (given, maxTokens, tokens) => {
  const worstCase = (most: number) => ({ amountNano: 0, tokens: 10 + most, maxTokens: most });

  expect(withinTokens(worstCase(100_000), { requestsPerMinute: null, callsAtOnce: null, ...given }, worstCase)).toMatchObject({ maxTokens, tokens });
});
