import type { RouterConfig } from '#shared/config/router-config.ts';
import type { Manifest } from '#shared/contracts/manifest/manifest.ts';

const MAX_NAMES = 6;

/** The models that the manifest names and the router does not have: a sentence each, with what to do. */
export function missingModels({ agent_config: { llms, search } }: Manifest, { models }: Pick<RouterConfig, 'models'>): string[] {
  const known = new Set(models.flatMap(({ id, aliases }) => [id, ...aliases]));
  const named: [place: string, model: string | null][] = [
    ['llms.default', llms.default],
    ...llms.fallback.map((model, field): [string, string] => [`llms.fallback[${field}]`, model]),
    ['llms.evaluation', llms.evaluation],
    ['llms.evaluation_fallback', llms.evaluation_fallback],
    ['search.embedding_model', search?.type === 'pgvector' ? search.embedding_model : null],
  ];
  const names = [...known].slice(0, MAX_NAMES).join(', ');
  const others = known.size > MAX_NAMES ? `${names} and ${known.size - MAX_NAMES} more` : names;
  return named.flatMap(([field, model]) =>
    model === null || known.has(model)
      ? []
      : [
          `agent_config.${field}: the router has no model ${JSON.stringify(model)}: use one of its models (${others}), or add this name to the configuration of the router, as a model or an alias`,
        ],
  );
}
