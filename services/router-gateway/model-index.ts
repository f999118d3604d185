import { defaultModelOf, type ModelUse, serves, wrongUse } from '#shared/config/model-kinds.ts';
import { modelNamesOf } from '#shared/config/model-names.ts';
import type { ModelConfig, RouterConfig } from '#shared/config/router-config.ts';
import { withSuffixEffects } from '#shared/config/suffix-effects.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { ModelRequest } from '#shared/surfaces/surface.ts';

type Names = Pick<ModelRequest, 'model' | 'models'>;

/** The configured models by id, alias and suffixes. */
export interface ModelIndex {
  /** The request with what the suffixes of its names ask for; the same object when they ask for nothing. @throws as `withSuffixEffects` */
  withSuffixEffects(request: ModelRequest, use: ModelUse): ModelRequest;
  /**
   * Id of the first model among those named that serves the use; the default's when none is named.
   * @throws `router.model_unknown`; `request.invalid` when those that are known serve the other use
   */
  firstKnown(request: Names, use: ModelUse): string;
  /** The models among those named that serve the use, or the default. */
  allKnown(request: Names, use: ModelUse): ModelConfig[];
}

/** @throws `config.invalid` when the default is neither */
export function indexModels(config: Pick<RouterConfig, 'models' | 'default_model'>): ModelIndex {
  const { default_model } = config;
  const names = modelNamesOf(config);
  const fallback = defaultModelOf(config);
  if (fallback === null && default_model !== undefined) {
    throw new SwitchyardError('config.invalid', `default_model: '${default_model}' is not among the models`);
  }
  return {
    withSuffixEffects: (request, use) => withSuffixEffects(request, use, names),
    allKnown(request, use) {
      const named = namesIn(request);
      const known = named.length === 0 ? (fallback ?? []) : named.flatMap((name) => names.resolve(name)?.model ?? []);
      return [...new Set([known].flat())].filter((model) => serves(model, use));
    },
    firstKnown(request, use) {
      const named = namesIn(request);
      const param = request.model === undefined ? 'models' : 'model';
      const [first] = named;
      if (first === undefined) {
        if (fallback !== null) return fallback.id;
        throw new SwitchyardError('request.invalid', 'model is required: this router has no model that chats', { details: { param: 'model' } });
      }
      let other: string | null = null;
      for (const name of named) {
        const model = names.resolve(name)?.model;
        if (model === undefined) continue;
        if (serves(model, use)) return model.id;
        other ??= name;
      }
      if (other !== null) throw wrongUse(other, use, param);
      throw new SwitchyardError('router.model_unknown', `${first} is not a valid model ID`, { details: { param } });
    },
  };
}

function namesIn({ model, models: others = [] }: Names): string[] {
  return model === undefined ? others : [model, ...others];
}
