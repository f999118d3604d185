import { describe, expect, it } from 'vitest';
import type { EndpointConfig } from '#shared/config/router-config.ts';
import type { ProviderPart } from '#shared/contracts/router/provider-part.ts';
import { failureOf } from '#shared/errors/switchyard-error.ts';
import type { ProviderAdapter, VectorCall, VectorInput, Vectors } from '../providers/provider.ts';
import { embedInputs } from './embed-inputs.ts';
import type { VectorPlan } from './embedding-fit.ts';
import { VectorBudget } from './vector-budget.ts';
import { MAX_VECTOR_CHARS } from './vector-text.ts';

const timeouts = { connectMs: 1, firstTokenMs: 1, idleMs: 1 };
const endpoint: EndpointConfig = { provider: 'p', upstream_model: 'm' };
const plan = { maxInputs: 2, dimensions: null, expectedDimensions: 2, format: 'float', inputType: null } as const;
const answered = (inputs: readonly VectorInput[]): Vectors => ({
  vectors: inputs.map(({ length }) => Float32Array.of(length, 1)),
  promptTokens: inputs.length,
});

/** Runs one attempt. @returns what was asked for, and what was emitted */
async function run(given: Partial<VectorPlan>, answer: (call: VectorCall, at: number) => Vectors | Promise<Vectors>, signal = new AbortController().signal) {
  const calls: VectorCall[] = [];
  const parts: ProviderPart[] = [];
  const adapter: ProviderAdapter = {
    slug: 'p',
    stream: async () => {},
    embed: async (call) => {
      calls.push(call);
      return answer(call, calls.length - 1);
    },
    upstreamBody: () => ({}),
  };
  const candidate = { endpoint, provider: { slug: 'p', name: 'P' }, request: { messages: [], user: 'u' } };
  const embedding = { candidate, plan: { ...plan, inputs: ['a', 'bb', 'ccc'], ...given }, timeouts, budget: new VectorBudget() };
  const error = await embedInputs(embedding, adapter, signal, (received) => {
    parts.push(...received);
    return true;
  }).then(
    () => null,
    (thrown: unknown) => failureOf(thrown),
  );
  return { calls, parts, error };
}

const usageOf = (promptTokens: number): ProviderPart => ({
  type: 'usage',
  usage: { promptTokens, completionTokens: 0, cachedTokens: 0, reasoningTokens: 0 },
});

it('sends at most so many inputs at once, in order, and counts what each used', async () => {
  const { calls, parts, error } = await run({}, ({ inputs }) => answered(inputs));

  expect(error).toBeNull();
  expect(calls.map(({ inputs, user }) => [inputs, user])).toEqual([
    [['a', 'bb'], 'u'],
    [['ccc'], 'u'],
  ]);
  expect(parts).toEqual([
    { type: 'vectors', vectors: ['[1,1]', '[2,1]'] },
    usageOf(2),
    { type: 'vectors', vectors: ['[3,1]'] },
    usageOf(3),
    { type: 'finish', reason: 'stop', nativeReason: null },
  ]);
});

it('counts token ids where the upstream counts nothing, and leaves texts to be estimated', async () => {
  const uncounted = ({ inputs }: VectorCall) => ({ ...answered(inputs), promptTokens: null });
  const ids = await run({ inputs: [[1, 2, 3], [4], [5, 6]] }, uncounted);
  const texts = await run({}, uncounted);

  expect(ids.parts.filter(({ type }) => type === 'usage')).toEqual([usageOf(4), usageOf(6)]);
  expect(texts.parts.filter(({ type }) => type === 'usage')).toEqual([]);
});

describe('an attempt fails', () => {
  it.each<[string, Float32Array[], RegExp]>([
    ['too few', [Float32Array.of(1, 2)], /1 vectors for 2 inputs/],
    ['too many', [Float32Array.of(1, 2), Float32Array.of(1, 2), Float32Array.of(1, 2)], /3 vectors for 2 inputs/],
    ['of other dimensions', [Float32Array.of(1, 2), Float32Array.of(1, 2, 3)], /a vector of 3 dimensions in place of 2/],
    ['empty', [Float32Array.of(1, 2), Float32Array.of()], /a vector of 0 dimensions/],
    ['no number', [Float32Array.of(1, 2), Float32Array.of(1, Number.NaN)], /no number/],
    ['infinite', [Float32Array.of(1, 2), Float32Array.of(1, Number.POSITIVE_INFINITY)], /no number/],
  ])('when vectors are %s', async (_, vectors, message) => {
    const { error, parts } = await run({}, () => ({ vectors, promptTokens: 1 }));
    expect(error).toMatchObject({ code: 'router.provider_unavailable', message: expect.stringMatching(message) });
    expect(parts).toEqual([]);
  });

  it('when later vectors have other dimensions than the first, where the model does not state them', async () => {
    const { error } = await run({ expectedDimensions: null }, (_, at) => ({
      vectors: at === 0 ? [Float32Array.of(1), Float32Array.of(2)] : [Float32Array.of(1, 2)],
      promptTokens: 1,
    }));
    expect(error).toMatchObject({ message: expect.stringMatching(/a vector of 2 dimensions in place of 1/) });
  });

  it('with 413 when vectors of unknown dimensions turn out too long', async () => {
    const inputs = ['a', 'b', 'c'];
    const vector = new Float32Array(Math.floor(MAX_VECTOR_CHARS / 12)).fill(0.1);
    const { error } = await run({ inputs, maxInputs: 60, expectedDimensions: null, format: 'base64' }, () => ({
      vectors: inputs.map(() => vector),
      promptTokens: 1,
    }));
    expect(error).toMatchObject({ code: 'request.too_large', details: { param: 'input' } });
  });

  it('when it is aborted between two requests', async () => {
    const controller = new AbortController();
    const { error, calls } = await run(
      {},
      ({ inputs }) => {
        controller.abort(new Error('left'));
        return answered(inputs);
      },
      controller.signal,
    );
    expect(error).not.toBeNull();
    expect(calls).toHaveLength(1);
  });
});
