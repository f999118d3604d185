import { expect, it } from 'vitest';
import { manifest } from '#shared/contracts/manifest/manifest.ts';
import { missingModels } from './missing-models.ts';

const routerConfig = { models: [{ id: 'local/small', aliases: ['switchyard/assistant'], description: '', endpoints: [] }] };

function manifestWith(llms: object, search: object | null = null) {
  return manifest.parse({
    id: 'a',
    name: 'A',
    version: '1',
    agent_config: {
      runtime: { api_key: '${A}' },
      platform: { public_key: '${B}', secret_key: '${C}' },
      llms: { default: 'switchyard/assistant', api_key: '${D}', ...llms },
      context: { system_prompt: { id: 'p', version: 1 }, language: 'match_user' },
      search,
    },
  });
}

it('finds nothing missing where the router has every model, by its id or an alias', () => {
  expect(missingModels(manifestWith({ fallback: ['local/small'], evaluation: 'local/small' }), routerConfig)).toEqual([]);
});

it('names every place with a model that the router lacks, and its models', () => {
  const search = { hostname: 'db', port: 5432, password: '${P}', collection: 'docs', embedding_model: 'a/embedder', embedding_dimensions: 3 };
  const llms = { default: 'a/b', fallback: ['local/small', 'a/c'], evaluation: 'a/d', evaluation_fallback: 'a/e' };
  const lines = missingModels(manifestWith(llms, search), routerConfig);

  expect(lines.map((line) => line.split(':')[0])).toEqual([
    'agent_config.llms.default',
    'agent_config.llms.fallback[1]',
    'agent_config.llms.evaluation',
    'agent_config.llms.evaluation_fallback',
    'agent_config.search.embedding_model',
  ]);
  expect(lines[0]).toBe(
    'agent_config.llms.default: the router has no model "a/b": use one of its models (local/small, switchyard/assistant), or add this name to the configuration of the router, as a model or an alias',
  );
});

it('distinguishes models that chat from those of vectors', () => {
  const vectors = { id: 'local/vectors', aliases: [], description: '', embeddings: { shortens: true }, endpoints: [] };
  const search = { hostname: 'db', port: 5432, password: '${P}', collection: 'docs', embedding_model: 'local/small', embedding_dimensions: 3 };
  const models = [...routerConfig.models, vectors];

  expect(missingModels(manifestWith({}, { ...search, embedding_model: 'local/vectors' }), { models })).toEqual([]);
  expect(missingModels(manifestWith({ evaluation: 'local/vectors' }, search), { models })).toEqual([
    expect.stringMatching(/^agent_config.llms.evaluation: the router has no model "local\/vectors": use one of its models \(local\/small, /),
    expect.stringMatching(/^agent_config.search.embedding_model: the router has no embedding model "local\/small": use one of its models \(local\/vectors\)/),
  ]);
});
