import { describe, expect, it } from 'vitest';
import { type RouterConfig, routerConfig } from '#shared/config/router-config.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { EmbeddingCall } from '#shared/contracts/router/embedding-call.ts';
import { chosenCandidates } from './test-support/chosen.ts';

const providers = [
  { slug: 'east', kind: 'openai-compatible', profile: 'openai' },
  { slug: 'west', kind: 'openai-compatible', base_url: 'http://127.0.0.1:2/v1' },
  { slug: 'gem', kind: 'gemini', api_key: '${KEY}' },
  { slug: 'claude', kind: 'anthropic', api_key: '${KEY}' },
];

function configWith(endpoints: object[], embeddings: object = { dimensions: 8 }): RouterConfig {
  return routerConfig.parse({
    providers,
    models: [
      { id: 'a/vectors', aliases: ['v'], embeddings, endpoints: endpoints.map((endpoint) => ({ upstream_model: 'm', ...endpoint })) },
      { id: 'a/chat', endpoints: [{ provider: 'east', upstream_model: 'c' }] },
    ],
    keys: [{ id: 'k', key: '${KEY}' }],
  });
}

const call: EmbeddingCall = { format: 'float', dimensions: null, inputType: null, tokens: null };
const picture = [{ role: 'user' as const, content: [{ type: 'image_url' as const, image_url: { url: 'data:image/png;base64,AA' } }] }];

function candidates(config: RouterConfig, embedding: Partial<EmbeddingCall> = {}, request: Partial<ChatRequest> = {}, more: object = {}) {
  return chosenCandidates(config, { model: 'a/vectors', ...request }, { embedding: { ...call, ...embedding }, ...more });
}

const at = (list: ReturnType<typeof chosenCandidates>) => list.map(({ provider, vectors }) => [provider.slug, vectors?.maxInputs]);

it('are the endpoints of providers that give vectors, with what each takes at once', () => {
  const config = configWith([{ provider: 'claude' }, { provider: 'east' }, { provider: 'west', max_inputs: 7 }, { provider: 'gem' }]);

  expect(at(candidates(config))).toEqual([
    ['east', 2_048],
    ['west', 7],
    ['gem', 100],
  ]);
  expect(at(candidates(config, {}, { provider: { order: ['gem'], allow_fallbacks: false } }))).toEqual([['gem', 100]]);
});

it('without such a provider there is none, and the error says why', () => {
  const config = configWith([{ provider: 'claude' }]);
  expect(() => candidates(config)).toThrow(
    expect.objectContaining({ code: 'router.no_provider', details: { excluded_by: [{ filter: 'embeddings', endpoints: ['a/vectors@claude'] }] } }),
  );
  const unpriced = configWith([{ provider: 'east' }]);
  expect(() => candidates(unpriced, {}, {}, { reserved: true })).toThrow(expect.objectContaining({ code: 'router.no_provider' }));
});

describe('inputs', () => {
  it('of token ids go to endpoints that take them, and are refused where none does', () => {
    const tokens = [[1, 2], [3]];
    const config = configWith([{ provider: 'gem' }, { provider: 'east' }]);
    expect(candidates(config, { tokens }).map(({ provider, vectors }) => [provider.slug, vectors?.inputs])).toEqual([['east', tokens]]);
    const none = () => candidates(configWith([{ provider: 'gem' }]), { tokens });
    expect(none).toThrow(expect.objectContaining({ code: 'request.invalid', details: { param: 'input' } }));
  });

  it('with pictures go to endpoints that declare them, and are refused where none does', () => {
    const config = configWith([{ provider: 'east' }, { provider: 'gem', modalities: ['image'] }]);
    expect(at(candidates(config, {}, { messages: picture }))).toEqual([['gem', 100]]);
    const none = () => candidates(configWith([{ provider: 'east' }]), {}, { messages: picture });
    expect(none).toThrow(expect.objectContaining({ code: 'request.invalid', message: expect.stringMatching(/image/), details: { param: 'input' } }));
  });

  it('with more vectors than one answer may have are refused before anything is sent', () => {
    const config = configWith([{ provider: 'east' }], { dimensions: 65_536 });
    const messages = Array.from({ length: 200 }, () => ({ role: 'user' as const, content: 'hi' }));
    expect(() => candidates(config, {}, { messages })).toThrow(expect.objectContaining({ code: 'request.too_large' }));
    expect(candidates(config, { format: 'base64' }, { messages: messages.slice(0, 100) })).toHaveLength(1);
  });
});

describe('dimensions', () => {
  const dimensions = (config: RouterConfig, asked: number | null) =>
    candidates(config, { dimensions: asked }).map(({ vectors }) => [vectors?.dimensions, vectors?.expectedDimensions]);

  it('are asked for where the request says so, and expected as the model states them', () => {
    expect(dimensions(configWith([{ provider: 'east' }]), null)).toEqual([[null, 8]]);
    expect(dimensions(configWith([{ provider: 'east' }]), 4)).toEqual([[4, 4]]);
    expect(dimensions(configWith([{ provider: 'east' }], {}), 4)).toEqual([[4, 4]]);
    expect(dimensions(configWith([{ provider: 'east' }], {}), null)).toEqual([[null, null]]);
    expect(dimensions(configWith([{ provider: 'east' }], { dimensions: 8, shortens: false }), 8)).toEqual([[null, 8]]);
  });

  it.each([
    [9, {}, /have 8 dimensions$/],
    [4, { shortens: false }, /can't be shortened/],
  ])('that the model does not have (%i) are refused', (asked, more, message) => {
    const refused = () => dimensions(configWith([{ provider: 'east' }], { dimensions: 8, ...more }), asked);
    expect(refused).toThrow(expect.objectContaining({ code: 'request.invalid', message: expect.stringMatching(message), details: { param: 'dimensions' } }));
  });
});

describe('models', () => {
  const config = configWith([{ provider: 'east' }]);

  it('of the other use are refused alone, by name, and skipped beside others', () => {
    const chat = (request: object) => chosenCandidates(config, request).map(({ model }) => model.id);
    expect(() => chat({ model: 'v' })).toThrow(expect.objectContaining({ code: 'request.invalid', message: expect.stringMatching(/v is an embedding model/) }));
    expect(() => candidates(config, {}, { model: 'a/chat' })).toThrow(expect.objectContaining({ message: expect.stringMatching(/no embedding model/) }));
    expect(chat({ models: ['a/vectors', 'a/chat'] })).toEqual(['a/chat']);
  });

  it('that chat are the default of chats, wherever they stand', () => {
    expect(chosenCandidates(config).map(({ model }) => model.id)).toEqual(['a/chat']);
  });
});
