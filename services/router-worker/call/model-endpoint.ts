import type { EndpointConfig, ModelConfig } from '#shared/config/router-config.ts';
import { slugsOf } from '#shared/config/slugs.ts';
import type { ConfiguredProvider } from '../providers/dialect.ts';
import type { ConfiguredProviders } from '../providers/registry.ts';

/** A model at a provider. */
export interface ModelEndpoint {
  /** `<model id>@<tag>`. */
  id: string;
  /** The provider's slug, or one of the endpoint's own that extends it (`deepinfra/turbo`). */
  tag: string;
  /** By which requests and rules name it: the tag and its bases. */
  slugs: readonly string[];
  model: ModelConfig;
  endpoint: EndpointConfig;
  provider: Pick<ConfiguredProvider, 'slug' | 'name' | 'kind' | 'dataPolicy' | 'reasoningFormat' | 'vectors' | 'webSearch' | 'readsPdf'>;
  /** Null: not known. */
  prices: Prices | null;
}

/** USD: per million tokens, per call, per picture, per recording and per search. Null: it has no price of its own. */
export interface Prices {
  prompt: number;
  completion: number;
  request: number;
  image: number | null;
  audio: number | null;
  webSearch: number | null;
}

/** The endpoints of a model, in the configuration's order. Those of unknown providers are left out. */
export function modelEndpointsOf(model: ModelConfig, providers: ConfiguredProviders): ModelEndpoint[] {
  return model.endpoints.flatMap((endpoint) => {
    const provider = providers.get(endpoint.provider);
    if (provider === undefined) return [];
    const tag = endpoint.tag ?? provider.slug;
    return [{ id: `${model.id}@${tag}`, tag, slugs: slugsOf(tag), model, endpoint, provider, prices: pricesOf(endpoint) }];
  });
}

/** Read once: they are compared for each call. */
function pricesOf({ prices }: EndpointConfig): Prices | null {
  if (prices === undefined) return null;
  const own = (price: string | undefined) => (price === undefined ? null : Number(price));
  return {
    prompt: Number(prices.prompt),
    completion: Number(prices.completion),
    request: Number(prices.request ?? 0),
    image: own(prices.image),
    audio: own(prices.audio),
    webSearch: own(prices.web_search),
  };
}

/** Ids of endpoints by the filter that excluded them, for the decision and for the error when none is left. */
export type Exclusions = Map<string, string[]>;

export function passes({ id }: Pick<ModelEndpoint, 'id'>, verdict: boolean, filter: string, exclusions: Exclusions): boolean {
  if (verdict) return true;
  const excluded = exclusions.get(filter);
  if (excluded === undefined) exclusions.set(filter, [id]);
  else excluded.push(id);
  return false;
}
