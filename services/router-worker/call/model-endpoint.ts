import type { EndpointConfig, ModelConfig, ProviderConfig } from '#shared/config/router-config.ts';

/** A place where a model is served. */
export interface ModelEndpoint {
  model: ModelConfig;
  endpoint: EndpointConfig;
  provider: ProviderConfig;
}

/** Which filter left out which endpoints (`model@provider`), for the caller whose request nobody can serve. */
export type Exclusions = Map<string, string[]>;

/** Passes a verdict on, and notes whom it leaves out and why. */
export function passes({ model, provider }: ModelEndpoint, verdict: boolean, filter: string, exclusions: Exclusions): boolean {
  if (!verdict) exclusions.set(filter, [...(exclusions.get(filter) ?? []), `${model.id}@${provider.slug}`]);
  return verdict;
}
