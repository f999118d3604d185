import { type ModelUse, serves } from '#shared/config/model-kinds.ts';
import { modelNamesOf } from '#shared/config/model-names.ts';
import type { RouterConfig } from '#shared/config/router-config.ts';
import type { Manifest } from '#shared/contracts/manifest/manifest.ts';

const MAX_NAMES = 6;

/** The models that the manifest names and the router does not have: a sentence each, with what to do. */
export function missingModels({ agent_config: { llms, search } }: Manifest, { models }: Pick<RouterConfig, 'models'>): string[] {
  const chats: Named[] = [
    ['llms.default', llms.default],
    ...llms.fallback.map((model, field): Named => [`llms.fallback[${field}]`, model]),
    ['llms.evaluation', llms.evaluation],
    ['llms.evaluation_fallback', llms.evaluation_fallback],
  ];
  const vectors: Named[] = [['search.embedding_model', search?.type === 'pgvector' ? search.embedding_model : null]];
  return [...missingFrom(models, 'chat', chats), ...missingFrom(models, 'vectors', vectors)];
}

type Named = [place: string, model: string | null];

function missingFrom(models: RouterConfig['models'], use: ModelUse, named: readonly Named[]): string[] {
  const serving = models.filter((model) => serves(model, use));
  const known = new Set(serving.flatMap(({ id, aliases }) => [id, ...aliases]));
  const { resolve } = modelNamesOf({ models: serving });
  const kind = use === 'chat' ? 'model' : 'embedding model';
  const names = [...known].slice(0, MAX_NAMES).join(', ');
  const others = known.size > MAX_NAMES ? `${names} and ${known.size - MAX_NAMES} more` : names;
  const advice = known.size === 0 ? 'add one of this name' : `use one of its models (${others}), or add this name`;
  return named.flatMap(([field, model]) =>
    model === null || resolve(model) !== null
      ? []
      : [`agent_config.${field}: the router has no ${kind} ${JSON.stringify(model)}: ${advice} to the configuration of the router, as a model or an alias`],
  );
}
