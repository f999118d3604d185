import { isAbsolute, join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkRouterConfig } from '#shared/config/load-router-config.ts';
import { builtInRouter } from './built-in-router.ts';
import { parseConfig } from './config.ts';

describe('the settings', () => {
  it('are refused all at once, each by its name', () => {
    const read = () => parseConfig({ ROUTER_PORT: '70000', AGENT_PORT: 'eighty', STREAMING: 'perhaps', OPENAI_BASE_URL: 'ftp://x' });

    for (const name of ['ROUTER_PORT', 'AGENT_PORT', 'STREAMING', 'OPENAI_BASE_URL']) expect(read).toThrow(name);
  });

  it('are refused in sentences of ours, which do not tell the value', () => {
    const read = () => parseConfig({ ROUTER_PORT: '70000', AGENT_PORT: 'eighty', STREAMING: 'perhaps', TURN_TIMEOUT_SECONDS: '0' });

    expect(read).toThrow(/^the environment has 4 errors:\n/);
    expect(read).toThrow('ROUTER_PORT: must be at most 65535');
    expect(read).toThrow('AGENT_PORT: must be a number');
    expect(read).toThrow('TURN_TIMEOUT_SECONDS: must be at least 1');
    expect(read).not.toThrow(/perhaps|eighty|Too |Invalid|expected/);
  });

  it('leave the level of the log to the manifest, and make up the credentials of the sample alone', () => {
    expect(parseConfig({})).toMatchObject({ logLevel: null, isSample: true });
    expect(parseConfig({ LOG_LEVEL: 'WARNING', MANIFEST: 'agent.yaml' })).toMatchObject({ logLevel: 'WARNING', isSample: false });
  });

  it('refuse a list of no models', () => {
    expect(() => parseConfig({ OPENAI_API_KEY: 'k', OPENAI_MODELS: ' , ' })).toThrow('OPENAI_MODELS');
  });

  it('have the defaults of the contract, and count an empty value as not given', () => {
    const config = parseConfig({ ROUTER_PORT: '', STREAMING: '' });

    expect(config).toMatchObject({ routerPort: 3_000, agentPort: 8_080, streaming: false, coalesceMs: 150, drainTimeoutMs: 120_000, maxTokens: 100_000 });
    expect(config.openAi).toBeNull();
    expect(config.dataFolder).toBe(resolve('data'));
  });

  it('read "False" as false', () => {
    expect(parseConfig({ STREAMING: 'False' }).streaming).toBe(false);
    expect(parseConfig({ STREAMING: 'True' }).streaming).toBe(true);
  });

  it('look for the documents beside the manifest', () => {
    const { documentsPath } = parseConfig({ MANIFEST: join('some', 'agent.yaml') });

    expect(isAbsolute(documentsPath)).toBe(true);
    expect(documentsPath.endsWith(join('some', 'documents'))).toBe(true);
  });
});

describe('the router without a configuration', () => {
  const environment = { ROUTER_API_KEY: 'r', OPENAI_API_KEY: 'o' };

  it('has the scripted model, which answers the sample agent and says what it is', () => {
    const { models, providers } = checkRouterConfig(builtInRouter({ openAi: null }), environment);

    expect(providers.map((provider) => provider.kind)).toEqual(['scripted']);
    expect(models.map(({ id, aliases }) => [id, aliases])).toEqual([['scripted/assistant', ['switchyard/assistant']]]);
  });

  it('takes names of models that have a slash of their own, as model servers give them', () => {
    const openAi = { baseUrl: 'http://127.0.0.1:9/v1', models: ['meta-llama/Llama-3.1-8B'] };

    expect(checkRouterConfig(builtInRouter({ openAi }), environment).models[0]?.id).toBe('openai/meta-llama/Llama-3.1-8B');
  });

  it('has the models of the upstream when there is a key for it, the first of them for the sample agent', () => {
    const openAi = { baseUrl: 'http://127.0.0.1:9/v1', models: ['small', 'large'] };
    const { models, providers } = checkRouterConfig(builtInRouter({ openAi }), environment);

    expect(providers).toMatchObject([{ kind: 'openai-compatible', base_url: 'http://127.0.0.1:9/v1', api_key: '${OPENAI_API_KEY}' }]);
    expect(models.map(({ id, aliases }) => [id, aliases])).toEqual([
      ['openai/small', ['small', 'switchyard/assistant']],
      ['openai/large', ['large']],
    ]);
  });
});
