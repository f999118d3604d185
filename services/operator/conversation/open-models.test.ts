import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { RouterCall } from '#bus/messages/router.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { loadAgent } from '../load-agent.ts';
import { folderWith, SHOP } from '../test-support/agent-folder.ts';
import { openModels } from './open-models.ts';

const { agent_config: config, ...about } = SHOP['manifest.yaml'];

/** @param changes of the manifest's configuration */
async function open(environment: Environment, changes: object = {}) {
  const manifest = join(await folderWith({ ...SHOP, 'manifest.yaml': { ...about, agent_config: { ...config, ...changes } } }), 'manifest.yaml');
  const { bundle } = await loadAgent({ manifest, documents: null }, environment);
  return openModels(bundle.body.manifest, manifest, { environment, log: silentLog });
}

function call(model: string): RouterCall {
  const nowMs = Date.now();
  const facts = { callId: 'trn_1-1', origin: 'ses_1', want: 'none', surface: 'parts', deadlineAtMs: nowMs + 10_000, createdAtMs: nowMs } as const;
  const more = {
    detached: false,
    republished: false,
    keyId: '',
    traceparent: null,
    maxTokens: 100,
    reply: { sessionId: 'ses_1', actorId: 'trn_1', turnId: 'trn_1' },
  };
  return { v: 1, ...facts, ...more, request: { model, messages: [{ role: 'user', content: 'Hello' }] } };
}

const routerFile = (models: object[]) => ({
  providers: [{ slug: 'scripted', name: 'Scripted', kind: 'scripted' }],
  models,
  keys: [{ id: 'shop', name: 'Shop', key: '${SHOP_KEY}' }],
});
const endpoints = [{ provider: 'scripted', upstream_model: 'assistant' }];

it('without settings the script answers each model of the manifest, and no other', async () => {
  const { calls, answeredBy } = await open({}, { llms: { ...config.llms, fallback: ['openai/gpt-4'], evaluation: 'openai/gpt-5' } });

  expect(answeredBy).toContain('no model is configured');
  for (const model of ['openai/gpt-5', 'openai/gpt-4']) expect(await calls.execute(call(model))).toMatchObject({ type: 'completed', provider: 'Scripted' });
  expect(await calls.execute(call('openai/other'))).toMatchObject({ type: 'failed', failure: { code: 'router.model_unknown' } });
  await calls.close();
});

it('with ROUTER_CONFIG its models answer', async () => {
  const folder = await folderWith({ 'router.json': routerFile([{ id: 'openai/gpt-5', endpoints }]) });
  const { calls, answeredBy } = await open({ ROUTER_CONFIG: join(folder, 'router.json'), SHOP_KEY: 'a key' });

  expect(answeredBy).toBe(`the models of ${join(folder, 'router.json')}`);
  expect(await calls.execute(call('openai/gpt-5'))).toMatchObject({ type: 'completed', model: 'openai/gpt-5' });
  await calls.close();
});

it('a model of the manifest that the configured router lacks is an error, by field', async () => {
  const folder = await folderWith({ 'router.json': routerFile([{ id: 'openai/gpt-4', endpoints }]) });

  await expect(open({ ROUTER_CONFIG: join(folder, 'router.json'), SHOP_KEY: 'a key' })).rejects.toMatchObject({
    code: 'config.invalid',
    message: expect.stringContaining('agent_config.llms.default: the router has no model "openai/gpt-5"'),
  });
});

it('with the key of a vendor its models answer', async () => {
  const { calls, answeredBy } = await open({ ANTHROPIC_API_KEY: 'a key' }, { llms: { ...config.llms, default: 'switchyard/assistant' } });

  expect(answeredBy).toBe('the models of the vendors whose key is set');
  await calls.close();
});

it('with another platform its router answers, with the key that the manifest names', async () => {
  const manifest = join(await folderWith(SHOP), 'manifest.yaml');
  const { body } = (await loadAgent({ manifest, documents: null }, {})).bundle;
  const { platform, ...others } = body.manifest.agent_config;
  const named = { ...body.manifest, agent_config: { ...others, platform: { ...platform, base_url: 'https://models.example' } } };

  const { calls, answeredBy } = await openModels(named, manifest, { environment: { ROUTER_API_KEY: 'a key' }, log: silentLog });
  expect(answeredBy).toBe('the router at models.example');
  await calls.close();
  await expect(openModels(named, manifest, { environment: {}, log: silentLog })).rejects.toThrow('the environment variable ROUTER_API_KEY is not set');
});
