import type { EndpointConfig, ModelConfig } from '#shared/config/router-config.ts';
import type { ConfiguredProvider } from '../providers/dialect.ts';

/** A model at a provider. */
export interface ModelEndpoint {
  model: ModelConfig;
  endpoint: EndpointConfig;
  provider: Pick<ConfiguredProvider, 'slug' | 'name' | 'dataPolicy' | 'reasoningFormat' | 'vectors'>;
}

/** Endpoints (`model@provider`) by the filter that excluded them, for the error when none is left. */
export type Exclusions = Map<string, string[]>;

export function passes({ model, provider }: ModelEndpoint, verdict: boolean, filter: string, exclusions: Exclusions): boolean {
  if (!verdict) exclusions.set(filter, [...(exclusions.get(filter) ?? []), `${model.id}@${provider.slug}`]);
  return verdict;
}
