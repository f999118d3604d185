import { isAbsolute, join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { providerBlock } from '#services/router-worker/providers/registry.ts';
import { checkRouterConfig as checkedWith } from '#shared/config/load-router-config.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import { builtInRouter } from './built-in-router.ts';
import { parseConfig } from './config.ts';

describe('the settings', () => {
  it('are refused all at once, each by its name', () => {
    const read = () => parseConfig({ ROUTER_PORT: '70000', AGENT_PORT: 'eighty', STREAMING: 'perhaps', OPENAI_BASE_URL: 'ftp://x' });

    for (const name of ['ROUTER_PORT', 'AGENT_PORT', 'STREAMING', 'OPENAI_BASE_URL']) expect(read).toThrow(name);
  });

  it('are refused with messages that do not contain the value', () => {
    const read = () => parseConfig({ ROUTER_PORT: '70000', AGENT_PORT: 'eighty', STREAMING: 'perhaps', TURN_TIMEOUT_SECONDS: '0' });

    expect(read).toThrow(/^the environment has 4 errors:\n/);
    expect(read).toThrow('ROUTER_PORT: must be at most 65535');
    expect(read).toThrow('AGENT_PORT: must be a number');
    expect(read).toThrow('TURN_TIMEOUT_SECONDS: must be at least 1');
    expect(read).not.toThrow(/perhaps|eighty|Too |Invalid|expected/);
  });

  it('leave the level of the log to the manifest, and make up the credentials of the sample alone', () => {
    expect(parseConfig({})).toMatchObject({ logLevel: null, isSampleAgent: true });
    expect(parseConfig({ LOG_LEVEL: 'WARNING', MANIFEST: 'agent.yaml' })).toMatchObject({ logLevel: 'WARNING', isSampleAgent: false });
  });

  it('refuse prices beside a file that has its own', () => {
    expect(parseConfig({ ROUTER_PRICES: 'prices.yaml' }).routerPricesPath).toBe(resolve('prices.yaml'));
    expect(() => parseConfig({ ROUTER_PRICES: 'prices.yaml', ROUTER_CONFIG: 'router.yaml' })).toThrow('ROUTER_PRICES has no effect beside ROUTER_CONFIG');
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
  const checkRouterConfig = (value: unknown, given: Environment) => checkedWith(value, given, { secrets: 'all', provider: providerBlock });
  const environment = { ROUTER_API_KEY: 'r', ROUTER_MANAGEMENT_KEY: 'm', OPENAI_API_KEY: 'o' };
  const upstream = { baseUrl: 'http://127.0.0.1:9/v1', provider: { slug: 'local', name: 'Local' }, hasKey: true, models: ['small', 'large'] };

  it('has the scripted model, which answers the sample agent and says what it is, and a small one of vectors', () => {
    const { models, providers } = checkRouterConfig(builtInRouter({ openAi: null }), environment);

    expect(providers.map((provider) => provider.kind)).toEqual(['scripted', 'sentence-encoder']);
    expect(models.map(({ id, aliases }) => [id, aliases])).toEqual([
      ['scripted/assistant', ['switchyard/assistant']],
      ['scripted/embedding', []],
      ['local/universal-sentence-encoder-lite', []],
    ]);
  });

  it('recognises models of vectors by their names, and leaves the sample agent to the first that chats', () => {
    const names = ['nomic-embed-text', 'small', 'text-embedding-ada-002'];
    const { models } = checkRouterConfig(builtInRouter({ openAi: { ...upstream, models: names } }), environment);

    expect(models.map(({ id, aliases, embeddings }) => [id, aliases.length, embeddings])).toEqual([
      ['local/nomic-embed-text', 1, { shortens: true }],
      ['local/small', 2, undefined],
      ['local/text-embedding-ada-002', 1, { dimensions: 1_536, shortens: false }],
    ]);
  });

  it('takes names of models that have a slash of their own, as model servers give them', () => {
    const openAi = { ...upstream, models: ['meta-llama/Llama-3.1-8B'] };

    expect(checkRouterConfig(builtInRouter({ openAi }), environment).models[0]?.id).toBe('local/meta-llama/Llama-3.1-8B');
  });

  it('has the models of the upstream, the first of them for the sample agent', () => {
    const { models, providers } = checkRouterConfig(builtInRouter({ openAi: upstream }), environment);

    expect(providers).toMatchObject([
      { slug: 'local', name: 'Local', kind: 'openai-compatible', base_url: 'http://127.0.0.1:9/v1', api_key: '${OPENAI_API_KEY}' },
    ]);
    expect(models.map(({ id, aliases }) => [id, aliases])).toEqual([
      ['local/small', ['small', 'switchyard/assistant']],
      ['local/large', ['large']],
    ]);
  });

  it('has the models of each vendor whose key is set, the first of all for the sample agent', () => {
    const { vendors } = parseConfig({ ANTHROPIC_API_KEY: 'a' });
    const given = { ...environment, ANTHROPIC_API_KEY: 'a' };
    const alone = checkRouterConfig(builtInRouter({ openAi: null, vendors }), given);
    const both = checkRouterConfig(builtInRouter({ openAi: upstream, vendors }), given);

    expect(alone.providers).toMatchObject([{ slug: 'anthropic', kind: 'anthropic', api_key: '${ANTHROPIC_API_KEY}' }]);
    expect(alone.models[0]).toMatchObject({ id: 'anthropic/claude-sonnet-5-5', aliases: ['claude-sonnet-5-5', 'switchyard/assistant'] });
    expect(alone.models[0]?.endpoints[0]).toMatchObject({ max_completion_tokens: 128_000, modalities: ['image', 'file'] });
    expect(both.providers.map(({ slug }) => slug)).toEqual(['local', 'anthropic']);
    expect(both.models.filter(({ aliases }) => aliases.includes('switchyard/assistant')).map(({ id }) => id)).toEqual(['local/small']);
    const all = parseConfig({ ANTHROPIC_API_KEY: 'a', GEMINI_API_KEY: 'g' }).vendors;
    const kinds = checkRouterConfig(builtInRouter({ openAi: null, vendors: all }), { ...given, GEMINI_API_KEY: 'g' }).providers.map(({ kind }) => kind);
    expect(kinds).toEqual(['anthropic', 'gemini']);
    expect(parseConfig({ ANTHROPIC_API_KEY: '' }).vendors).toEqual([]);
    const elsewhere = parseConfig({ ANTHROPIC_API_KEY: 'a', ANTHROPIC_BASE_URL: 'http://127.0.0.1:9/proxy' }).vendors;
    expect(checkRouterConfig(builtInRouter({ openAi: null, vendors: elsewhere }), given).providers).toMatchObject([{ base_url: 'http://127.0.0.1:9/proxy' }]);
    expect(() => parseConfig({ GROQ_BASE_URL: 'http://127.0.0.1:9' })).toThrow('GROQ_BASE_URL has no effect without GROQ_API_KEY');
    expect(parseConfig({ ANTHROPIC_API_KEY: 'a', ROUTER_CONFIG: 'router.yaml' }).vendors).toEqual([]);
  });

  it('has the models that several vendors serve, at each of them whose key is set', () => {
    const sharedAt = (...settings: string[]) => {
      const keys = Object.fromEntries(settings.map((name) => [name, 'k']));
      const { models } = checkRouterConfig(builtInRouter({ openAi: null, vendors: parseConfig(keys).vendors }), { ...environment, ...keys });
      return models.find(({ id }) => id === 'meta-llama/llama-3.3-70b-instruct')?.endpoints.map(({ provider, prices }) => [provider, prices?.prompt]);
    };

    expect(sharedAt('GROQ_API_KEY', 'TOGETHER_API_KEY')).toEqual([
      ['groq', '0.59'],
      ['together', '0.88'],
    ]);
    expect(sharedAt('TOGETHER_API_KEY', 'XAI_API_KEY')).toEqual([['together', '0.88']]);
    expect(sharedAt('MISTRAL_API_KEY', 'DEEPSEEK_API_KEY')).toBeUndefined();
  });

  it('has a provider without a credential when there is an address and no key', () => {
    const { providers } = checkRouterConfig(builtInRouter({ openAi: { ...upstream, hasKey: false } }), { ROUTER_API_KEY: 'r', ROUTER_MANAGEMENT_KEY: 'm' });

    expect(providers[0]).not.toHaveProperty('api_key');
  });
});

describe('the upstream of the settings', () => {
  const checkRouterConfig = (value: unknown, given: Environment) => checkedWith(value, given, { secrets: 'all', provider: providerBlock });
  const environment = { ROUTER_API_KEY: 'r', ROUTER_MANAGEMENT_KEY: 'm', OPENAI_API_KEY: 'o' };
  const of = (environment: Record<string, string>) => parseConfig(environment).openAi;

  it.each([{}, { OPENAI_API_KEY: '' }, { OPENAI_API_KEY: 'none' }, { OPENAI_API_KEY: 'none', OPENAI_BASE_URL: '' }])('is none with %o', (environment) => {
    expect(of(environment)).toBeNull();
  });

  it('is one without a credential when only its address is given, and its models are asked for', () => {
    const local = { OPENAI_BASE_URL: 'http://localhost:11434/v1' };

    expect(of(local)).toEqual({ baseUrl: local.OPENAI_BASE_URL, provider: { slug: 'localhost', name: 'localhost' }, hasKey: false, models: null });
    expect(of({ ...local, OPENAI_API_KEY: 'none' })).toMatchObject({ hasKey: false });
  });

  it('is OpenAI with a key alone, with models that need not be asked for', () => {
    expect(of({ OPENAI_API_KEY: 'k' })).toMatchObject({
      provider: { slug: 'openai', name: 'OpenAI' },
      hasKey: true,
      models: expect.arrayContaining(['gpt-5-mini']),
    });
  });

  it('is OpenAI with facts of the catalogue, under any name of the provider, and leaves models that it does not have to their names', () => {
    const openAi = of({ OPENAI_API_KEY: 'k', OPENAI_PROVIDER_NAME: 'Team A', OPENAI_MODELS: 'gpt-5-mini,ft:gpt-4o:acme' });
    const { models, providers } = checkRouterConfig(builtInRouter({ openAi: { ...openAi, models: openAi?.models } as never }), environment);
    expect(providers).toMatchObject([{ slug: 'team-a', data_policy: { trains: false, retains: true } }]);
    expect(models.map(({ id, endpoints }) => [id, endpoints[0]?.prices?.prompt, endpoints[0]?.context_length])).toEqual([
      ['team-a/gpt-5-mini', '0.25', 400_000],
      ['team-a/ft:gpt-4o:acme', undefined, undefined],
    ]);
  });

  it('refuses the address of OpenAI without a key', () => {
    expect(() => of({ OPENAI_BASE_URL: 'https://api.openai.com/v1' })).toThrow('OPENAI_API_KEY');
  });

  it.each([
    ['https://openrouter.ai/api/v1', undefined, 'openrouter.ai', 'openrouter.ai'],
    ['http://[::1]:8000/v1', undefined, '1', '[::1]'],
    ['http://127.0.0.1:8000/v1', 'My vLLM', 'my-vllm', 'My vLLM'],
    ['https://api.openai.com/v1', 'Team A', 'team-a', 'Team A'],
  ])('of %s with the name %s has ids that begin with %s', (baseUrl, given, slug, name) => {
    const environment = { OPENAI_API_KEY: 'k', OPENAI_BASE_URL: baseUrl, ...(given === undefined ? {} : { OPENAI_PROVIDER_NAME: given }) };

    expect(of(environment)?.provider).toEqual({ slug, name });
  });

  it('refuses a name without a letter or a digit', () => {
    expect(() => of({ OPENAI_BASE_URL: 'http://127.0.0.1:9/v1', OPENAI_PROVIDER_NAME: '—' })).toThrow('OPENAI_PROVIDER_NAME');
  });

  it('is ignored beside a configuration of the router', () => {
    expect(of({ ROUTER_CONFIG: 'router.yaml', OPENAI_BASE_URL: 'https://api.openai.com/v1' })).toBeNull();
  });
});
