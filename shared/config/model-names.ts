import { type ModelSuffix, splitModelName } from './model-suffixes.ts';
import type { EndpointConfig, ModelConfig, RouterConfig } from './router-config.ts';

/** A model by a name of a request. */
interface NamedModel {
  model: ModelConfig;
  /** Those of the name that its model leaves to the request. */
  suffixes: readonly ModelSuffix[];
}

/** The names of a configuration. */
export interface ModelNames {
  /** Null: not known, or a variant that the configuration does not have. */
  resolve(name: string): NamedModel | null;
  /** Every model that `resolve` may return: those configured, then those derived from them. */
  readonly models: readonly ModelConfig[];
}

interface Variant {
  model: ModelConfig;
  suffixes: ReadonlySet<ModelSuffix>;
}

const NO_SUFFIXES: readonly ModelSuffix[] = [];

/** Indexes ids and aliases; ids win. A configured name wins whole, with its suffixes in any order: `a/x:free` serves `a/x:online:free`. */
export function modelNamesOf({ models }: Pick<RouterConfig, 'models'>): ModelNames {
  const byName = new Map<string, NamedModel>();
  const add = (name: string, model: ModelConfig) => byName.set(name, { model, suffixes: NO_SUFFIXES });
  for (const model of models) for (const alias of model.aliases) add(alias, model);
  for (const model of models) add(model.id, model);
  const variantsOf = new Map<string, Variant[]>();
  for (const [name, { model }] of byName) {
    const { base, suffixes } = splitModelName(name);
    const variants = variantsOf.get(base) ?? [];
    variants.push({ model, suffixes });
    variantsOf.set(base, variants);
  }
  const freeOf = new Map(models.map((model) => [model, withFreeEndpoints(model)]));
  const derived = models.flatMap((model) => {
    const free = freeOf.get(model) ?? null;
    return free === null || free === model ? [] : [free];
  });
  return {
    models: [...models, ...derived],
    resolve(name) {
      const exact = byName.get(name);
      if (exact !== undefined) return exact;
      const { base, suffixes } = splitModelName(name);
      if (suffixes.size === 0) return null;
      const variant = largest(variantsOf.get(base) ?? [], suffixes);
      if (variant === null) return null;
      const rest = [...suffixes].filter((suffix) => !variant.suffixes.has(suffix));
      if (rest.includes('extended')) return null;
      if (!rest.includes('free')) return { model: variant.model, suffixes: rest };
      const free = freeOf.get(variant.model) ?? null;
      return free === null ? null : { model: free, suffixes: rest.filter((suffix) => suffix !== 'free') };
    },
  };
}

/** The variant with most of the suffixes and no other; null: none. */
function largest(variants: readonly Variant[], suffixes: ReadonlySet<ModelSuffix>): Variant | null {
  let best: Variant | null = null;
  for (const variant of variants) {
    if (![...variant.suffixes].every((suffix) => suffixes.has(suffix))) continue;
    if (best === null || variant.suffixes.size > best.suffixes.size) best = variant;
  }
  return best;
}

/** The model with its endpoints that cost nothing; null: it has none. */
function withFreeEndpoints(model: ModelConfig): ModelConfig | null {
  const endpoints = model.endpoints.filter(isFree);
  if (endpoints.length === 0) return null;
  return endpoints.length === model.endpoints.length ? model : { ...model, endpoints };
}

/** Without prices it is not known what an endpoint costs. */
function isFree({ prices }: EndpointConfig): boolean {
  return prices !== undefined && Object.values(prices).every((price) => Number(price) === 0);
}
