import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import { sendsParameter } from '#shared/config/kind-parameters.ts';
import { routerConfig } from '#shared/config/router-config.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { openProviders } from './registry.ts';

const url = { base_url: 'http://127.0.0.1:9/v1' };
const KINDS = [
  { kind: 'openai-compatible', ...url },
  { kind: 'anthropic', api_key: '${KEY}' },
  { kind: 'gemini', api_key: '${KEY}' },
  { kind: 'bedrock', region: 'eu-central-1', api_key: '${KEY}' },
  { kind: 'responses', ...url },
];
/** Of each kind models that together take all that its API has. */
const MODELS: Readonly<Record<string, readonly string[]>> = {
  anthropic: ['claude-opus-4-6', 'claude-3-haiku'],
  bedrock: ['anthropic.claude-opus-4-6-v1:0', 'amazon.nova-2-lite-v1:0', 'anthropic.claude-3-haiku-20240307-v1:0'],
};
const tool = { type: 'function', function: { name: 'f', parameters: { type: 'object' } } };
const schema = { type: 'object', properties: { a: { type: 'string' } } };
/** A value of each parameter, and what it needs beside it. */
const PARAMETERS: readonly [name: string, value: unknown, beside?: object][] = [
  ['temperature', 0.5],
  ['top_p', 0.9],
  ['top_k', 4],
  ['min_p', 0.1],
  ['top_a', 0.1],
  ['repetition_penalty', 1.1],
  ['frequency_penalty', 0.5],
  ['presence_penalty', 0.5],
  ['logit_bias', { 5: 1 }],
  ['logprobs', true],
  ['top_logprobs', 2, { logprobs: true }],
  ['max_tokens', 5_000],
  ['max_completion_tokens', 5_000],
  ['reasoning', { effort: 'low' }],
  ['reasoning_effort', 'low'],
  ['response_format', { type: 'json_schema', json_schema: { name: 's', schema } }],
  ['seed', 7],
  ['stop', ['x']],
  ['tools', [tool]],
  ['tool_choice', 'required', { tools: [tool] }],
  ['parallel_tool_calls', false, { tools: [tool] }],
  ['verbosity', 'low'],
  ['prediction', { type: 'content', content: 'a' }],
  ['modalities', ['text', 'image']],
  ['audio', { voice: 'alloy', format: 'wav' }],
  ['image_config', { aspect_ratio: '16:9' }],
  ...['default', 'flex', 'priority', 'scale'].map((tier): [string, unknown] => ['service_tier', tier]),
  ['web_search_options', {}],
  ['n', 2],
  ['my_own', 1],
];

it.each(KINDS)('what is known of the kind $kind is what its adapter sends', async (block) => {
  const config = routerConfig.parse({
    providers: [{ slug: 'p', ...block }],
    models: [{ id: 'a/one', endpoints: [{ provider: 'p', upstream_model: 'm' }] }],
    keys: [{ id: 'k', key: '${KEY}' }],
  });
  const providers = openProviders({ config, environment: { KEY: 'k' }, clock: systemClock, scriptedWordsPerSecond: 0 });
  onTestFinished(() => providers.close());
  const bodyOf = (model: string, fields: object) =>
    JSON.stringify(providers.adapters.get('p')?.upstreamBody({ model, request: { messages: [{ role: 'user', content: 'hi' }], ...fields } as ChatRequest }));
  const isSent = (name: string, value: unknown, beside: object) =>
    (MODELS[block.kind] ?? ['m']).some((model) => bodyOf(model, { ...beside, [name]: value }) !== bodyOf(model, beside));

  const sent = PARAMETERS.map(([name, value, beside = {}]) => [name, value, isSent(name, value, beside)]);
  expect(sent).toEqual(PARAMETERS.map(([name, value]) => [name, value, sendsParameter(block.kind, name, value)]));
});
