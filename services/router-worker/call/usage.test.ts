import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addPart, emptyAnswer } from '#shared/surfaces/answer.ts';
import { costNanoUsd, usageOf } from './usage.ts';

const request = { messages: [{ role: 'user' as const, content: 'x'.repeat(9) }] };
const used = { promptTokens: 1_000, completionTokens: 200, cachedTokens: 400, reasoningTokens: 50 };

describe('costNanoUsd', () => {
  it('charges cached tokens at their own price, and the request once', () => {
    const prices = { prompt: '2', completion: '10', cached_prompt: '0.5', request: '0.001' };
    // 600 × 2 + 400 × 0.5 + 200 × 10, in millionths of a dollar, and a tenth of a cent.
    expect(costNanoUsd(used, prices)).toBe(3_400_000n + 1_000_000n);
  });

  it('rounds once, half up, to a billionth of a dollar', () => {
    const one = { promptTokens: 1, completionTokens: 0, cachedTokens: 0, reasoningTokens: 0 };
    expect(costNanoUsd(one, { prompt: '0.0005', completion: '0' })).toBe(1n);
    expect(costNanoUsd(one, { prompt: '0.000499999', completion: '0' })).toBe(0n);
    expect(costNanoUsd({ ...one, completionTokens: 1 }, { prompt: '0.00025', completion: '0.00025' })).toBe(1n);
  });

  it('never charges more cached tokens than the prompt has', () => {
    expect(costNanoUsd({ ...used, cachedTokens: 9_999 }, { prompt: '1', completion: '0' })).toBe(1_000_000n);
  });

  it('is exact where floats are not', () => {
    fc.assert(
      fc.property(fc.nat(10_000_000), fc.nat(999_999_999), (tokens, billionths) => {
        const price = `0.${String(billionths).padStart(9, '0')}`;
        const cost = costNanoUsd({ promptTokens: tokens, completionTokens: 0, cachedTokens: 0, reasoningTokens: 0 }, { prompt: price, completion: '0' });
        const exact = BigInt(tokens) * BigInt(billionths);
        expect(cost * 1_000_000n - exact).toBeLessThanOrEqual(500_000n);
        expect(exact - cost * 1_000_000n).toBeLessThan(500_001n);
      }),
    );
  });
});

describe('usageOf', () => {
  it('reports what the upstream counted, and the cost as a number of dollars', () => {
    expect(usageOf({ ...emptyAnswer(), usage: used }, request, { prompt: '2', completion: '10' })).toEqual({
      prompt_tokens: 1_000,
      completion_tokens: 200,
      total_tokens: 1_200,
      prompt_tokens_details: { cached_tokens: 400 },
      completion_tokens_details: { reasoning_tokens: 50 },
      cost: 0.004,
    });
  });

  it('has no cost when the price is not known', () => {
    expect(usageOf({ ...emptyAnswer(), usage: used }, request, undefined)).not.toHaveProperty('cost');
  });

  it.each([true, false])('estimates when the upstream reports nothing, also where the text is accumulated: %s', (isRetained) => {
    const answer = emptyAnswer(isRetained);
    addPart(answer, { type: 'reasoning-delta', text: 'abcd' });
    addPart(answer, { type: 'text-delta', text: 'abcde' });
    expect(usageOf(answer, request, undefined)).toMatchObject({ prompt_tokens: 3, completion_tokens: 3, completion_tokens_details: { reasoning_tokens: 1 } });
  });

  it('counts reasoning that was hidden from the caller', () => {
    const answer = { ...emptyAnswer(), hiddenReasoningChars: 8 };
    addPart(answer, { type: 'text-delta', text: 'abcd' });
    expect(usageOf(answer, request, undefined)).toMatchObject({ completion_tokens: 3, completion_tokens_details: { reasoning_tokens: 2 } });
  });

  it('has the tokens written to a cache when the upstream reports them, and no such field otherwise', () => {
    const tokensOf = (more: object) => usageOf({ ...emptyAnswer(), usage: { ...used, ...more } }, request, undefined).prompt_tokens_details;
    expect(tokensOf({ cacheWriteTokens: 40 })).toEqual({ cached_tokens: used.cachedTokens, cache_write_tokens: 40 });
    expect(tokensOf({})).toEqual({ cached_tokens: used.cachedTokens });
  });

  it('charges nothing for an answer that failed', () => {
    expect(usageOf({ ...emptyAnswer(), usage: used }, request, { prompt: '2', completion: '10' }, { isBroken: true })).toMatchObject({
      cost: 0,
      total_tokens: 1_200,
    });
  });
});
