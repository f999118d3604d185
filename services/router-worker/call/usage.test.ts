import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { EndpointConfig } from '#shared/config/router-config.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { PricedField } from '#shared/contracts/router/priced-fields.ts';
import type { ProviderUsage } from '#shared/contracts/router/provider-part.ts';
import { nanoPricesOf } from '#shared/credit/nano-prices.ts';
import { type Answer, addPart, emptyAnswer } from '#shared/surfaces/answer.ts';
import { type AttemptEnd, billOf, costOf } from './usage.ts';

type Prices = NonNullable<EndpointConfig['prices']>;

const request = { messages: [{ role: 'user' as const, content: 'x'.repeat(9) }] };
const used = { promptTokens: 1_000, completionTokens: 200, cachedTokens: 400, reasoningTokens: 50 };

const total = (usage: ProviderUsage, prices: Prices, of: ChatRequest = request) => costOf(usage, of, nanoPricesOf(prices)).total;
const usageOf = (answer: Answer, of: ChatRequest, prices?: Prices) => billOf(answer, of, { prices }).usage;

describe('costOf', () => {
  it('charges cached tokens at their own price, and the request once', () => {
    const prices = { prompt: '2', completion: '10', cached_prompt: '0.5', request: '0.001' };
    // 600 × 2 + 400 × 0.5 + 200 × 10, in millionths of a dollar, and a tenth of a cent.
    expect(total(used, prices)).toBe(3_400_000 + 1_000_000);
  });

  it('charges tokens written to a cache at their own price, or else as others', () => {
    const written = { ...used, cacheWriteTokens: 100 };
    // 500 × 2 + 400 × 0.5 + 100 × 2.5 + 200 × 10
    expect(total(written, { prompt: '2', completion: '10', cached_prompt: '0.5', cache_write: '2.5' })).toBe(3_450_000);
    expect(total(written, { prompt: '2', completion: '10', cached_prompt: '0.5' })).toBe(3_400_000);
    expect(total({ ...used, cacheWriteTokens: 9_999 }, { prompt: '1', completion: '0', cached_prompt: '0', cache_write: '2' })).toBe(1_200_000);
  });

  it('charges tokens that are kept for an hour at their own price, or else as other writes', () => {
    const written = { ...used, cacheWriteTokens: 100, cacheWrite1hTokens: 60 };
    const prices = { prompt: '2', completion: '10', cached_prompt: '0.5', cache_write: '2.5' };
    // 500 × 2 + 400 × 0.5 + 40 × 2.5 + 60 × 4 + 200 × 10
    expect(total(written, { ...prices, cache_write_1h: '4' })).toBe(3_540_000);
    expect(total(written, prices)).toBe(3_450_000);
    expect(total(written, { ...prices, cache_write: undefined, cache_write_1h: '4' })).toBe(3_520_000);
    expect(total({ ...written, cacheWrite1hTokens: 9_999 }, { ...prices, cache_write_1h: '4' }), 'no more than were written').toBe(3_600_000);
  });

  it('charges each picture and recording of the request that have a price', () => {
    const picture = { type: 'image_url' as const, image_url: { url: 'https://a.test/x.png' } };
    const recording = { type: 'input_audio' as const, input_audio: { data: 'aGk=', format: 'wav' } };
    const content = { messages: [{ role: 'user' as const, content: [picture, picture, recording, { type: 'text' as const, text: 'hi' }] }] };
    const nothing = { promptTokens: 0, completionTokens: 0, cachedTokens: 0, reasoningTokens: 0 };
    expect(total(nothing, { prompt: '1', completion: '1', image: '0.002', audio: '0.01' }, content)).toBe(14_000_000);
    expect(total(nothing, { prompt: '1', completion: '1', image: '0.002' }, content)).toBe(4_000_000);
    expect(total(nothing, { prompt: '1', completion: '1' }, content)).toBe(0);
  });

  it('rounds once, half up, to a billionth of a dollar', () => {
    const one = { promptTokens: 1, completionTokens: 0, cachedTokens: 0, reasoningTokens: 0 };
    expect(total(one, { prompt: '0.0005', completion: '0' })).toBe(1);
    expect(total(one, { prompt: '0.000499999', completion: '0' })).toBe(0);
    expect(total({ ...one, completionTokens: 1 }, { prompt: '0.00025', completion: '0.00025' })).toBe(1);
  });

  it('never charges more cached tokens than the prompt has', () => {
    expect(total({ ...used, cachedTokens: 9_999 }, { prompt: '1', completion: '0' })).toBe(1_000_000);
  });

  it('is exact where floats are not', () => {
    fc.assert(
      fc.property(fc.nat(10_000_000), fc.nat(999_999_999), (tokens, billionths) => {
        const price = `0.${String(billionths).padStart(9, '0')}`;
        const cost = total({ promptTokens: tokens, completionTokens: 0, cachedTokens: 0, reasoningTokens: 0 }, { prompt: price, completion: '0' });
        const exact = BigInt(tokens) * BigInt(billionths);
        expect(BigInt(cost) * 1_000_000n - exact).toBeLessThanOrEqual(500_000n);
        expect(exact - BigInt(cost) * 1_000_000n).toBeLessThan(500_001n);
      }),
    );
  });
});

describe('billOf', () => {
  const tier = (factor: number) => ({ prompt: String(2 * factor), completion: String(10 * factor) });
  const plain = { prompt: '2', completion: '10', request: '0.001' };
  const tiered = { ...plain, tiers: { flex: tier(0.5), priority: { ...tier(2), cached_prompt: '0' } } };
  const charged = { plain: 5_000_000, flex: 3_000_000, priority: 7_400_000 };

  it.each<[asked: string | undefined, stated: string | null, keyof typeof charged]>([
    ['priority', 'priority', 'priority'],
    ['priority', 'default', 'plain'],
    ['priority', null, 'priority'],
    ['priority', 'auto', 'priority'],
    ['flex', 'flex', 'flex'],
    ['flex', 'default', 'plain'],
    ['flex', null, 'plain'],
    [undefined, 'priority', 'priority'],
    [undefined, 'standard', 'plain'],
    ['scale', 'scale', 'plain'],
    ['auto', null, 'plain'],
  ])('charges a request for the tier %s whose answer states %s at that of: %s', (asked, stated, expected) => {
    const answer = { ...emptyAnswer(), usage: used, metadata: { id: null, systemFingerprint: null, serviceTier: stated } };
    const asking = { ...request, ...(asked && { service_tier: asked }) } as typeof request;
    expect(billOf(answer, asking, { prices: tiered }).costNano).toBe(charged[expected]);
    expect(billOf(answer, asking, { prices: plain }).costNano).toBe(charged.plain);
  });

  it('reports what the upstream counted, and the cost as a number of dollars', () => {
    expect(usageOf({ ...emptyAnswer(), usage: used }, request, { prompt: '2', completion: '10' })).toEqual({
      prompt_tokens: 1_000,
      completion_tokens: 200,
      total_tokens: 1_200,
      prompt_tokens_details: { cached_tokens: 400 },
      completion_tokens_details: { reasoning_tokens: 50 },
      cost: 0.004,
      is_byok: false,
      cost_details: { upstream_inference_cost: null, upstream_inference_prompt_cost: 0.002, upstream_inference_completions_cost: 0.002 },
    });
  });

  it('charges one search for a request with `web_search_options`, where its endpoint has a price of searches', () => {
    const asking = { ...request, web_search_options: {} };
    const answer = { ...emptyAnswer(), usage: used };
    const prices = { prompt: '2', completion: '10' };
    expect(billOf(answer, asking, { prices: { ...prices, web_search: '0.01' } })).toMatchObject({
      costNano: 14_000_000,
      usage: { server_tool_use: { web_search_requests: 1 } },
    });
    expect(billOf(answer, request, { prices: { ...prices, web_search: '0.01' } }).costNano).toBe(4_000_000);
    expect(billOf(answer, asking, { prices })).toMatchObject({
      costNano: 4_000_000,
      usage: expect.not.objectContaining({ server_tool_use: expect.anything() }),
    });
    expect(billOf({ ...answer, usage: { ...used, webSearches: 3 } }, asking, { prices: { ...prices, web_search: '0.01' } }).costNano, 'as counted').toBe(
      34_000_000,
    );
  });

  it('charges nothing for fields that the upstream did not get', () => {
    const asking = { ...request, web_search_options: {}, service_tier: 'priority' as const };
    const prices = { prompt: '2', completion: '10', web_search: '0.01', tiers: { priority: { prompt: '4', completion: '20' } } };
    const answer = (...omittedFields: PricedField[]): Answer => ({ ...emptyAnswer(), usage: used, omittedFields });
    expect(billOf({ ...emptyAnswer(), usage: used }, asking, { prices }).costNano).toBe(18_000_000);
    expect(billOf(answer('service_tier'), asking, { prices }).costNano).toBe(14_000_000);
    expect(billOf(answer('web_search_options'), asking, { prices })).toMatchObject({
      costNano: 8_000_000,
      usage: expect.not.objectContaining({ server_tool_use: expect.anything() }),
    });
    const served = { ...answer('service_tier', 'web_search_options'), metadata: { ...emptyAnswer().metadata, serviceTier: 'priority' } };
    expect(billOf(served, asking, { prices }).costNano, 'the tier that it states').toBe(8_000_000);
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

  it('has neither a cost nor its details, and never null, where the endpoint has no prices', () => {
    const bill = billOf({ ...emptyAnswer(), usage: used }, request, undefined);
    expect(bill.costNano).toBeNull();
    expect(Object.keys(bill.usage)).not.toEqual(expect.arrayContaining(['cost']));
    expect(Object.keys(bill.usage)).not.toEqual(expect.arrayContaining(['cost_details']));
  });

  const prices = { prompt: '2', completion: '10' };
  const shown = (): Answer => {
    const answer = emptyAnswer();
    addPart(answer, { type: 'text-delta', text: 'abcdefgh' });
    return answer;
  };

  const begun = (answer: Answer, completionTokens = 3, promptTokens = used.promptTokens): Answer => {
    addPart(answer, { type: 'usage-so-far', read: () => ({ ...used, promptTokens, completionTokens }) });
    return answer;
  };

  it('estimates no completion above the limit of the request, and none once the answer has ended with its usage', () => {
    const long = (stated: Partial<Answer>): Answer => ({ ...emptyAnswer(), textChars: 400, usage: { ...used, completionTokens: 20 }, ...stated });
    const tokensOf = (answer: Answer, of: ChatRequest) => billOf(answer, of, { prices }, 'aborted').usage.completion_tokens;
    expect(tokensOf(long({}), request)).toBe(100);
    expect(tokensOf(long({ usage: null }), { ...request, max_tokens: 50 })).toBe(50);
    expect(tokensOf(long({}), { ...request, max_completion_tokens: 15 }), 'what is stated counts').toBe(20);
    expect(tokensOf(long({ usage: null, reasoningChars: 400 }), { ...request, max_tokens: 50 })).toBe(50);
    expect(tokensOf(long({ finishReason: 'stop' }), request)).toBe(20);
    expect(billOf(long({ finishReason: 'stop' }), request, { prices }, 'aborted').isEstimated).toBe(false);
  });

  it('estimates the prompt of an answer that broke off with its tools, and without its files', () => {
    const tools = [{ type: 'function' as const, function: { name: 'find', description: 'a'.repeat(4_000) } }];
    const file = { type: 'file' as const, file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${'A'.repeat(40_000)}` } };
    const asked: ChatRequest = { messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }, file] }], tools };
    const { usage } = billOf(shown(), asked, { prices }, 'failed');
    expect(usage.prompt_tokens).toBeGreaterThan(1_000);
    expect(usage.prompt_tokens).toBeLessThan(1_100);
  });

  it.each<[string, AttemptEnd, () => Answer, number]>([
    // 3 tokens of the prompt at 2, and 2 of the text at 10.
    ['what was shown, when the upstream breaks off', 'failed', shown, 26_000],
    ['what was shown, when the caller leaves', 'aborted', shown, 26_000],
    ['what the upstream counted, when it breaks off behind its usage', 'failed', () => ({ ...shown(), usage: used }), 4_000_000],
    ['what the upstream counted, when the caller leaves before any content', 'aborted', () => ({ ...emptyAnswer(), usage: used }), 4_000_000],
    ['nothing, when the upstream fails without content', 'failed', () => ({ ...emptyAnswer(), usage: used }), 0],
    ['nothing, when the caller leaves before the model has answered', 'aborted', () => ({ ...emptyAnswer(), usage: { ...used, completionTokens: 0 } }), 0],
    // 1,000 tokens of the prompt at 2, and 2 or 3 of the completion at 10.
    ['the prompt that the upstream had counted, and what was shown', 'failed', () => begun(shown(), 1), 2_020_000],
    ['what the upstream had counted, where that is more than was shown', 'aborted', () => begun(shown()), 2_030_000],
    ['no less than what was shown, where the usage came before it', 'failed', () => ({ ...shown(), usage: { ...used, completionTokens: 0 } }), 2_020_000],
    ['what the upstream had counted, when the caller leaves before any content', 'aborted', () => begun(emptyAnswer()), 2_030_000],
    ['nothing, when the upstream fails without content behind its first counts', 'failed', () => begun(emptyAnswer()), 0],
    ['a prompt that is counted at the end alone as it is estimated', 'aborted', () => begun(shown(), 0, 0), 26_000],
    ['nothing, when the upstream ends its answer with an error', 'failed', () => ({ ...shown(), usage: used, finishReason: 'error' }), 0],
  ])('charges %s', (_, end, answer, costNano) => {
    const bill = billOf(answer(), request, { prices }, end);
    expect([bill.costNano, bill.usage.cost]).toEqual([costNano, costNano / 1_000_000_000]);
    if (costNano === 0) expect(bill.usage.cost_details).toMatchObject({ upstream_inference_prompt_cost: 0, upstream_inference_completions_cost: 0 });
  });
});
