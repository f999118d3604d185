import { defaultModelOf, type ModelUse, serves, wrongUse } from '#shared/config/model-kinds.ts';
import type { ModelConfig, RouterConfig } from '#shared/config/router-config.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';

type Names = Pick<ChatRequest, 'model' | 'models'>;

/** The configured models by id and alias. */
export interface ModelIndex {
  /**
   * Id of the first model among those named that serves the use; the default's when none is named.
   * @throws `router.model_unknown`; `request.invalid` when those that are known serve the other use
   */
  firstKnown(request: Names, use: ModelUse): string;
  /** The models among those named that serve the use, or the default. */
  allKnown(request: Names, use: ModelUse): ModelConfig[];
}

/** Indexes models by id and alias. @throws `config.invalid` when the default is neither */
export function indexModels(config: Pick<RouterConfig, 'models' | 'default_model'>): ModelIndex {
  const { models, default_model } = config;
  const modelOf = new Map<string, ModelConfig>();
  for (const model of models) for (const alias of model.aliases) modelOf.set(alias, model);
  // Ids last: they win over other models' aliases.
  for (const model of models) modelOf.set(model.id, model);
  const fallback = defaultModelOf(config);
  if (fallback === null && default_model !== undefined) {
    throw new SwitchyardError('config.invalid', `default_model: '${default_model}' is not among the models`);
  }
  return {
    allKnown(request, use) {
      const named = namesIn(request);
      const known = named.length === 0 ? (fallback ?? []) : named.flatMap((name) => modelOf.get(name) ?? []);
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
        const model = modelOf.get(name);
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
