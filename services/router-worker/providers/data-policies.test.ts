import { expect, it } from 'vitest';
import { dataPolicyOf } from '#shared/config/data-policy.ts';
import { PROFILES } from './openai-compatible/profiles.ts';
import { configuredProviders, providerBlock } from './registry.ts';

const api_key = '${KEY}';
const policy = { data_policy: { trains: true, retains: false } };
const url = { base_url: 'http://127.0.0.1:9/v1' };
const blocks: Record<string, unknown>[] = [
  { kind: 'scripted' },
  { kind: 'sentence-encoder' },
  { kind: 'anthropic', api_key },
  { kind: 'anthropic', api_key, ...policy },
  { kind: 'gemini', api_key },
  { kind: 'gemini', api_key, ...policy },
  { kind: 'bedrock', region: 'eu-central-1', api_key },
  { kind: 'bedrock', region: 'eu-central-1', api_key, ...policy },
  { kind: 'responses', ...url },
  { kind: 'responses', ...url, ...policy },
  { kind: 'openai-compatible', base_url: 'https://api.openai.com/v1', api_key },
  ...Object.entries(PROFILES).flatMap(([profile, { apiVersion }]) => {
    const block = { kind: 'openai-compatible', profile, ...url, api_key, ...(apiVersion === 'required' && { api_version: '2025-01-01' }) };
    return [block, { ...block, ...policy }];
  }),
].map((block, index) => ({ slug: `p${index}`, ...block }));

it('gateways read of a block the policy that its dialect has', () => {
  const providers = blocks.map((block) => providerBlock.parse(block));
  const configured = configuredProviders({ providers });

  for (const block of providers) {
    const { isDistillable: _, ...known } = configured.get(block.slug)?.dataPolicy ?? {};
    expect([block, dataPolicyOf(block)]).toEqual([block, known]);
  }
  expect(blocks.length).toBeGreaterThan(20);
});

it('is the vendor’s usual one for blocks that name its profile', () => {
  const of = (profile: string) => dataPolicyOf({ slug: 'a', kind: 'openai-compatible', profile } as never);
  const policies = Object.fromEntries(
    Object.keys(PROFILES).map((profile) => [profile, Object.entries(of(profile)).flatMap(([name, does]) => (does ? [name] : []))]),
  );

  const [retained, both] = [['retains'], ['trains', 'retains']];
  expect(policies).toEqual({
    ...{ generic: both, openai: retained, azure: retained, 'azure-deployments': retained, openrouter: both, groq: retained, together: both, mistral: both },
    ...{ deepseek: both, xai: retained, vllm: [], ollama: both, 'llama.cpp': [] },
  });
});

it('is not known of a block with mistakes', () => {
  expect(dataPolicyOf({ slug: 'a', kind: 'scripted', data_policy: 'none' } as never)).toEqual({ trains: true, retains: true });
});
