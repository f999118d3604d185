import { dataPolicyOf } from '#shared/config/data-policy.ts';
import { serves } from '#shared/config/model-kinds.ts';
import type { EndpointConfig, ModelConfig, RouterConfig } from '#shared/config/router-config.ts';
import type { EndpointList, ModelEndpoints } from '#shared/contracts/router/model-endpoints.ts';
import type { ModelAnswer, ModelEntry, ProviderList } from '#shared/contracts/router/model-list.ts';
import { endpointEntry, modelEntry } from './entries.ts';
import type { MeasuredOf } from './measured.ts';

/** A model with its entry, and what lists are filtered by beside it. */
export interface ListedModel {
  model: ModelConfig;
  entry: ModelEntry;
  /** Slugs and names of its providers, in lower case. */
  providers: ReadonlySet<string>;
  /** Any endpoint is of a provider that retains nothing. */
  isZeroRetention: boolean;
}

/** What the routes of models show of a configuration: made once, except for endpoints, which are made as they are asked for. Aliases are not listed. */
export interface ModelLists {
  readonly all: readonly ListedModel[];
  readonly ofVectors: readonly ListedModel[];
  /** Null: there is no such model. */
  one(id: string): ModelAnswer | null;
  endpoints(id: string): ModelEndpoints | null;
  zeroRetention(): EndpointList;
  readonly providers: ProviderList;
}

export function modelListsOf({ models, providers }: Pick<RouterConfig, 'models' | 'providers'>, measuredOf: MeasuredOf): ModelLists {
  const nameOf = new Map(providers.map(({ slug, name = slug }) => [slug, name]));
  const retaining = new Set(providers.filter((block) => dataPolicyOf(block).retains).map(({ slug }) => slug));
  const all = models.map((model): ListedModel => {
    const slugs = model.endpoints.map(({ provider }) => provider);
    return {
      model,
      entry: modelEntry(model),
      providers: new Set(slugs.flatMap((slug) => [slug, (nameOf.get(slug) ?? slug).toLowerCase()])),
      isZeroRetention: slugs.some((slug) => !retaining.has(slug)),
    };
  });
  const byId = new Map(all.map((listed) => [listed.model.id, listed]));
  const entryOf = (model: ModelConfig, endpoint: EndpointConfig) =>
    endpointEntry(model, endpoint, nameOf.get(endpoint.provider) ?? endpoint.provider, measuredOf(model, endpoint));
  return {
    all,
    ofVectors: all.filter(({ model }) => serves(model, 'vectors')),
    one(id) {
      const entry = byId.get(id)?.entry;
      return entry === undefined ? null : { ...entry, data: entry };
    },
    endpoints(id) {
      const listed = byId.get(id);
      if (listed === undefined) return null;
      const { name, created, description, architecture } = listed.entry;
      const endpoints = listed.model.endpoints.map((endpoint) => entryOf(listed.model, endpoint));
      return { data: { id, name, created, description, architecture, endpoints } };
    },
    zeroRetention: () => ({
      data: models.flatMap((model) => model.endpoints.filter(({ provider }) => !retaining.has(provider)).map((endpoint) => entryOf(model, endpoint))),
    }),
    providers: {
      data: providers.map(({ slug, name = slug, privacy_policy_url: privacy, terms_of_service_url: terms, status_page_url: status }) => ({
        name,
        slug,
        privacy_policy_url: privacy ?? null,
        terms_of_service_url: terms ?? null,
        status_page_url: status ?? null,
      })),
    },
  };
}
