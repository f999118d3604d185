import type { EndpointPrices } from '#shared/config/router-config.ts';
import { embeddingsOf } from './embedding-models.ts';
import type { ModelPrices } from './model-prices.ts';
import type { Upstream } from './upstream.ts';
import type { Vendor } from './vendors.ts';

/** The model alias in the sample agent's manifest. */
const ASSISTANT_ALIAS = 'switchyard/assistant';
/** Supported by every current chat model of the default upstream. */
const OPENAI_MAX_COMPLETION_TOKENS = 16_384;

interface Upstreams {
  /** Of the settings OPENAI_…; null: not set. */
  openAi: (Upstream & { models: readonly string[] }) | null;
  vendors?: readonly Vendor[];
  /** Null or absent: none are given. */
  prices?: ModelPrices | null;
}

interface Part {
  providers: object[];
  models: { id: string; name?: string; description?: string; aliases: string[]; embeddings?: object; endpoints: object[] }[];
}

/**
 * The router's configuration when no file is given: the upstream of the settings OPENAI_… and the vendors whose key is set, else the scripted model. The first
 * model that chats serves the sample agent. Validated like any other.
 */
export function builtInRouter({ openAi, vendors = [], prices = null }: Upstreams): unknown {
  const parts = [...(openAi === null ? [] : [upstream(openAi, prices)]), ...vendors.map((vendor) => vendorPart(vendor, prices))];
  if (parts.length === 0) parts.push(scripted());
  const models = parts.flatMap((part) => part.models);
  models.find(({ embeddings }) => embeddings === undefined)?.aliases.push(ASSISTANT_ALIAS);
  return {
    providers: parts.flatMap(({ providers }) => providers),
    models,
    keys: [
      { id: 'standalone', name: 'npm start', key: '${ROUTER_API_KEY}' },
      { id: 'management', name: 'npm start, management', key: '${ROUTER_MANAGEMENT_KEY}', management: true },
    ],
  };
}

function scripted(): Part {
  return {
    providers: [{ slug: 'scripted', name: 'Scripted', kind: 'scripted' }],
    models: [
      {
        id: 'scripted/assistant',
        name: 'Scripted assistant',
        description: 'Answers from the conversation itself, without a model: for trying things out offline.',
        aliases: [],
        endpoints: [{ provider: 'scripted', upstream_model: 'assistant', prices: { prompt: '0', completion: '0' } }],
      },
      {
        id: 'scripted/embedding',
        name: 'Scripted embedding',
        description: 'Vectors from the words and letters of a text, without a model: alike for texts that share words.',
        aliases: [],
        embeddings: { dimensions: 256 },
        endpoints: [{ provider: 'scripted', upstream_model: 'embedding', prices: { prompt: '0', completion: '0' } }],
      },
    ],
  };
}

function upstream({ baseUrl, provider, hasKey, models }: Upstream & { models: readonly string[] }, prices: ModelPrices | null): Part {
  const credential = hasKey ? { api_key: '${OPENAI_API_KEY}' } : {};
  return {
    providers: [{ ...provider, kind: 'openai-compatible', base_url: baseUrl, ...credential }],
    models: models.map((name) => {
      const embeddings = embeddingsOf(name);
      const endpoint = { provider: provider.slug, upstream_model: name, ...pricesOf(provider.slug, name, prices) };
      const named = { id: `${provider.slug}/${name}`, aliases: [name] };
      if (embeddings !== null) return { ...named, embeddings, endpoints: [endpoint] };
      return { ...named, endpoints: [{ ...endpoint, max_completion_tokens: OPENAI_MAX_COMPLETION_TOKENS }] };
    }),
  };
}

function vendorPart({ provider, models, modalities, embeddings = [] }: Vendor, prices: ModelPrices | null): Part {
  const { slug = '' } = provider;
  const endpointOf = (name: string) => ({ provider: slug, upstream_model: name, ...pricesOf(slug, name, prices) });
  const chatting = models.map(({ name, maxCompletionTokens }) => ({
    id: `${slug}/${name}`,
    aliases: [name],
    endpoints: [{ ...endpointOf(name), max_completion_tokens: maxCompletionTokens, modalities }],
  }));
  const embedding = embeddings.map(({ name, dimensions }) => ({
    id: `${slug}/${name}`,
    aliases: [name],
    embeddings: { dimensions },
    endpoints: [endpointOf(name)],
  }));
  return { providers: [provider], models: [...chatting, ...embedding] };
}

function pricesOf(slug: string, name: string, prices: ModelPrices | null): { prices?: EndpointPrices } {
  const found = prices?.get(`${slug}/${name}`) ?? prices?.get(name);
  return found === undefined ? {} : { prices: found };
}
