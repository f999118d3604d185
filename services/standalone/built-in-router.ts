import { type CatalogueEntry, catalogue, entriesOf, partsOfId } from '#shared/config/catalogue.ts';
import type { EndpointPrices } from '#shared/config/router-config.ts';
import { embeddingsOf } from './embedding-models.ts';
import type { ModelPrices } from './model-prices.ts';
import { isOpenAi, type Upstream } from './upstream.ts';
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
  models: Model[];
}

interface Model {
  id: string;
  name?: string;
  description?: string;
  aliases: string[];
  embeddings?: object | undefined;
  endpoints: object[];
}

/**
 * The router's configuration when no file is given: the upstream of the settings OPENAI_… and the vendors whose key is set, with their models of the
 * catalogue, else the scripted model and a small one of vectors. The first model that chats serves the sample agent. Validated like any other.
 */
export function builtInRouter({ openAi, vendors = [], prices = null }: Upstreams): unknown {
  const parts = [...(openAi === null ? [] : [upstream(openAi, prices)]), ...vendors.map((vendor) => vendorPart(vendor, prices))];
  if (parts.length === 0) parts.push(scripted());
  const shared = sharedModels(new Set(vendors.map(({ slug }) => slug)), prices);
  const models = withoutRepeats([...parts.flatMap((part) => part.models), ...shared]);
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
    providers: [
      { slug: 'scripted', name: 'Scripted', kind: 'scripted' },
      { slug: 'local', name: 'Local', kind: 'sentence-encoder' },
    ],
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
      {
        id: 'local/universal-sentence-encoder-lite',
        name: 'Universal Sentence Encoder Lite',
        description: 'Vectors by what an English text means, from a small model in this process: for trying search out offline.',
        aliases: [],
        embeddings: { dimensions: 512, shortens: false },
        endpoints: [{ provider: 'local', upstream_model: 'universal-sentence-encoder-lite', prices: { prompt: '0', completion: '0' } }],
      },
    ],
  };
}

function upstream({ baseUrl, provider, hasKey, models }: Upstream & { models: readonly string[] }, prices: ModelPrices | null): Part {
  const credential = hasKey ? { api_key: '${OPENAI_API_KEY}' } : {};
  const isVendor = isOpenAi(baseUrl);
  const known = new Map(isVendor ? entriesOf('openai').map(({ name, entry }) => [name, entry]) : []);
  return {
    providers: [{ ...(isVendor && factsOf('openai')), ...provider, kind: 'openai-compatible', base_url: baseUrl, ...credential }],
    models: models.map((name) => {
      const entry = known.get(name);
      if (entry !== undefined) return catalogued(provider.slug, name, entry, prices);
      const embeddings = embeddingsOf(name);
      const endpoint = { provider: provider.slug, upstream_model: name, ...pricesOf(provider.slug, name, prices) };
      const named = { id: `${provider.slug}/${name}`, aliases: [name] };
      if (embeddings !== null) return { ...named, embeddings, endpoints: [endpoint] };
      return { ...named, endpoints: [{ ...endpoint, max_completion_tokens: OPENAI_MAX_COMPLETION_TOKENS }] };
    }),
  };
}

function vendorPart({ slug, dialect, setting, baseUrl }: Vendor, prices: ModelPrices | null): Part {
  return {
    providers: [{ ...factsOf(slug), slug, ...dialect, ...(baseUrl !== null && { base_url: baseUrl }), api_key: `\${${setting}}` }],
    models: entriesOf(slug).map(({ name, entry }) => catalogued(slug, name, entry, prices)),
  };
}

/** Of a provider's block. */
function factsOf(slug: string): object {
  return catalogue().providers[slug] ?? {};
}

/** @param provider whose slug may differ from the catalogue's */
function catalogued(provider: string, name: string, entry: CatalogueEntry, prices: ModelPrices | null): Model {
  const { name: title, description: _, embeddings, ...facts } = entry;
  return {
    id: `${provider}/${name}`,
    ...(title !== undefined && { name: title }),
    aliases: [name],
    ...(embeddings !== undefined && { embeddings }),
    endpoints: [{ provider, upstream_model: name, ...facts, ...pricesOf(provider, name, prices) }],
  };
}

/** Those that an enabled vendor serves, at each of them. */
function sharedModels(enabled: ReadonlySet<string>, prices: ModelPrices | null): Model[] {
  const { models, shared } = catalogue();
  return Object.entries(shared).flatMap(([id, ids]): Model[] => {
    const served = ids.flatMap((one) => {
      const { provider, name } = partsOfId(one);
      const entry = models[one];
      return entry === undefined || !enabled.has(provider) ? [] : [catalogued(provider, name, entry, prices)];
    });
    return served.length === 0 ? [] : [{ id, aliases: [], endpoints: served.flatMap(({ endpoints }) => endpoints) }];
  });
}

/** The first model with a name has it: several vendors may serve one of the same name. */
function withoutRepeats(models: readonly Model[]): Model[] {
  const taken = new Set(models.map(({ id }) => id));
  return models.map((model) => {
    const aliases = model.aliases.filter((alias) => !taken.has(alias));
    for (const alias of aliases) taken.add(alias);
    return { ...model, aliases };
  });
}

function pricesOf(slug: string, name: string, prices: ModelPrices | null): { prices?: EndpointPrices } {
  const found = prices?.get(`${slug}/${name}`) ?? prices?.get(name);
  return found === undefined ? {} : { prices: found };
}
