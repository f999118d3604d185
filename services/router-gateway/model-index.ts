import type { ModelConfig, RouterConfig } from '#shared/config/router-config.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';

/** The configured models by id and alias. */
export interface ModelIndex {
  /** Id of the first known model among those named; the default's when none is. @throws `router.model_unknown` */
  firstKnown(request: Pick<ChatRequest, 'model' | 'models'>): string;
  /** The known models among those named, or the default. */
  allKnown(request: Pick<ChatRequest, 'model' | 'models'>): ModelConfig[];
}

/** Indexes models by id and alias. @throws `config.invalid` when the default is neither */
export function indexModels({ models, default_model }: Pick<RouterConfig, 'models' | 'default_model'>): ModelIndex {
  const idOf = new Map<string, string>();
  for (const model of models) for (const alias of model.aliases) idOf.set(alias, model.id);
  // Ids last: they win over other models' aliases.
  for (const model of models) idOf.set(model.id, model.id);
  const fallback = default_model === undefined ? models[0]?.id : idOf.get(default_model);
  if (fallback === undefined) throw new SwitchyardError('config.invalid', `default_model: '${default_model}' is not among the models`);

  const configOf = new Map(models.map((model) => [model.id, model]));
  return {
    allKnown({ model, models: others = [] }) {
      const named = model === undefined ? others : [model, ...others];
      const ids = new Set(named.length === 0 ? [fallback] : named.flatMap((name) => idOf.get(name) ?? []));
      return [...ids].flatMap((id) => configOf.get(id) ?? []);
    },
    firstKnown({ model, models: others = [] }) {
      const named = model === undefined ? others : [model, ...others];
      const [first] = named;
      if (first === undefined) return fallback;
      for (const name of named) {
        const id = idOf.get(name);
        if (id !== undefined) return id;
      }
      const param = model === undefined ? 'models' : 'model';
      throw new SwitchyardError('router.model_unknown', `${first} is not a valid model ID`, { details: { param } });
    },
  };
}
