import { type AccountRules, accountRulesOf } from '#shared/config/account-rules.ts';
import { dataPolicyOf, UNKNOWN_POLICY } from '#shared/config/data-policy.ts';
import { serves } from '#shared/config/model-kinds.ts';
import { modelNamesOf } from '#shared/config/model-names.ts';
import type { EndpointConfig, ModelConfig, RouterConfig } from '#shared/config/router-config.ts';
import type { EndpointList, ModelEndpoints } from '#shared/contracts/router/model-endpoints.ts';
import type { ModelAnswer, ModelEntry, ProviderList } from '#shared/contracts/router/model-list.ts';
import { endpointEntry, modelEntry } from './entries.ts';
import type { MeasuredEndpoints } from './measured.ts';
import { permits } from './permits.ts';

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
  /** Those that a key's requests may reach, with the endpoints that they may reach. */
  ofKey(keyId: string): readonly ListedModel[];
  /** By any of its names. Null: there is no such model. */
  one(id: string): ModelAnswer | null;
  endpoints(id: string, measured: MeasuredEndpoints): ModelEndpoints | null;
  zeroRetention(measured: MeasuredEndpoints): EndpointList;
  readonly providers: ProviderList;
}

type Listable = Pick<RouterConfig, 'models' | 'providers'> & Partial<Pick<RouterConfig, 'account' | 'keys'>>;

export function modelListsOf({ models, providers, account, keys }: Listable): ModelLists {
  const nameOf = new Map(providers.map(({ slug, name = slug }) => [slug, name]));
  const kinds = new Map(providers.map(({ slug, kind }) => [slug, kind]));
  const kindOf = (slug: string) => kinds.get(slug);
  const policies = new Map(providers.map((block) => [block.slug, dataPolicyOf(block)]));
  const retaining = new Set([...policies].filter(([, { retains }]) => retains).map(([slug]) => slug));
  const listed = (model: ModelConfig): ListedModel => {
    const slugs = model.endpoints.map(({ provider }) => provider);
    return {
      model,
      entry: modelEntry(model, kindOf),
      providers: new Set(slugs.flatMap((slug) => [slug, (nameOf.get(slug) ?? slug).toLowerCase()])),
      isZeroRetention: slugs.some((slug) => !retaining.has(slug)),
    };
  };
  const all = models.map(listed);
  const rules = accountRulesOf({ ...(account && { account }), ...(keys && { keys }) });
  const permitted = new Map<AccountRules, readonly ListedModel[]>();
  const byId = new Map(all.map((one) => [one.model.id, one]));
  const { resolve } = modelNamesOf({ models });
  const entryOf = (model: ModelConfig, endpoint: EndpointConfig, measured: MeasuredEndpoints) =>
    endpointEntry(model, endpoint, { name: nameOf.get(endpoint.provider) ?? endpoint.provider, kindOf }, measured.of(endpoint));
  return {
    all,
    ofKey(keyId) {
      const own = rules.of(keyId);
      const known = permitted.get(own);
      if (known !== undefined) return known;
      const reachable = models.flatMap((model) => {
        const endpoints = model.endpoints.filter((endpoint) => permits(own, endpoint, policies.get(endpoint.provider) ?? UNKNOWN_POLICY));
        return endpoints.length === 0 ? [] : [listed({ ...model, endpoints })];
      });
      permitted.set(own, reachable);
      return reachable;
    },
    ofVectors: all.filter(({ model }) => serves(model, 'vectors')),
    one(id) {
      const entry = (byId.get(id) ?? byId.get(resolve(id)?.model.id ?? ''))?.entry;
      return entry === undefined ? null : { ...entry, data: entry };
    },
    endpoints(id, measured) {
      const found = byId.get(id);
      if (found === undefined) return null;
      const { name, created, description, architecture } = found.entry;
      const endpoints = found.model.endpoints.map((endpoint) => entryOf(found.model, endpoint, measured));
      return { data: { id, name, created, description, architecture, endpoints } };
    },
    zeroRetention: (measured) => ({
      data: models.flatMap((model) => model.endpoints.filter(({ provider }) => !retaining.has(provider)).map((endpoint) => entryOf(model, endpoint, measured))),
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
