import type { Upstream } from './upstream.ts';

/** The model alias in the sample agent's manifest. */
const ASSISTANT_ALIAS = 'switchyard/assistant';
/** Supported by every current chat model of the default upstream. */
const OPENAI_MAX_COMPLETION_TOKENS = 16_384;

/** The router's configuration when no file is given: the upstream of the settings OPENAI_…, else the scripted model. Validated like any other. */
export function builtInRouter({ openAi }: { openAi: (Upstream & { models: readonly string[] }) | null }): unknown {
  return {
    ...(openAi === null ? scripted() : upstream(openAi)),
    keys: [{ id: 'standalone', name: 'npm start', key: '${ROUTER_API_KEY}' }],
  };
}

function scripted() {
  return {
    providers: [{ slug: 'scripted', name: 'Scripted', kind: 'scripted' }],
    models: [
      {
        id: 'scripted/assistant',
        name: 'Scripted assistant',
        description: 'Answers from the conversation itself, without a model: for trying things out offline.',
        aliases: [ASSISTANT_ALIAS],
        endpoints: [{ provider: 'scripted', upstream_model: 'assistant', prices: { prompt: '0', completion: '0' } }],
      },
    ],
  };
}

function upstream({ baseUrl, provider, hasKey, models }: Upstream & { models: readonly string[] }) {
  const credential = hasKey ? { api_key: '${OPENAI_API_KEY}' } : {};
  return {
    providers: [{ ...provider, kind: 'openai-compatible', base_url: baseUrl, ...credential }],
    models: models.map((name, index) => ({
      id: `${provider.slug}/${name}`,
      aliases: index === 0 ? [name, ASSISTANT_ALIAS] : [name],
      endpoints: [{ provider: provider.slug, upstream_model: name, max_completion_tokens: OPENAI_MAX_COMPLETION_TOKENS }],
    })),
  };
}
