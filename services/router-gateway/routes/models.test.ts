import { fastify } from 'fastify';
import { expect, it } from 'vitest';
import { fixed } from '#shared/config/living.ts';
import { routerConfig } from '#shared/config/router-config.ts';
import { notMeasured } from '../models/measured.ts';
import { modelListsOf } from '../models/model-lists.ts';
import { listModels } from './models.ts';

it('lists as inputs of a model what any of its endpoints declares, and text', async () => {
  const endpoints = [
    { provider: 'local', upstream_model: 'a', modalities: ['text', 'image'] },
    { provider: 'local', upstream_model: 'b', modalities: ['video', 'image'] },
  ];
  const config = routerConfig.parse({
    providers: [{ slug: 'local', kind: 'scripted' }],
    models: [
      { id: 'a/seeing', endpoints },
      { id: 'a/plain', endpoints: [{ provider: 'local', upstream_model: 'c' }] },
    ],
    keys: [{ id: 'k', key: '${KEY}' }],
  });
  const app = fastify();
  await app.register(listModels(fixed({ modelLists: modelListsOf(config) }), notMeasured));
  const { data } = (await app.inject('/models')).json();
  await app.close();

  expect(data.map(({ architecture }: { architecture: object }) => architecture)).toMatchObject([
    { modality: 'text+image+video->text', input_modalities: ['text', 'image', 'video'], output_modalities: ['text'] },
    { modality: 'text->text', input_modalities: ['text'], output_modalities: ['text'] },
  ]);
});

it('lists models of vectors with that output and without parameters, and by themselves', async () => {
  const endpoints = [{ provider: 'local', upstream_model: 'v', prices: { prompt: '0.02', completion: '0' }, context_length: 8_000 }];
  const config = routerConfig.parse({
    providers: [{ slug: 'local', kind: 'scripted' }],
    models: [
      { id: 'a/vectors', embeddings: { dimensions: 8 }, endpoints },
      { id: 'a/chat', endpoints },
    ],
    keys: [{ id: 'k', key: '${KEY}' }],
  });
  const app = fastify();
  await app.register(listModels(fixed({ modelLists: modelListsOf(config) }), notMeasured));
  const [all, ofVectors, one] = await Promise.all(
    ['/models', '/embeddings/models', '/models/a/vectors/endpoints'].map(async (url) => (await app.inject(url)).json()),
  );
  await app.close();

  const architecture = { modality: 'text->embeddings', input_modalities: ['text'], output_modalities: ['embeddings'] };
  expect(all.data).toMatchObject([{ id: 'a/vectors', architecture, supported_parameters: [] }, { id: 'a/chat' }]);
  expect(ofVectors).toMatchObject({ object: 'list', total_count: 1, data: [{ id: 'a/vectors', context_length: 8_000 }] });
  expect(one.data.endpoints).toMatchObject([
    { supported_parameters: [], supports_tool_choice: { auto: false, none: false, required: false, function: false } },
  ]);
});

it('finds a model by each of its names, also with a suffix', async () => {
  const endpoints = [{ provider: 'local', upstream_model: 'a' }];
  const config = routerConfig.parse({
    providers: [{ slug: 'local', kind: 'scripted' }],
    models: [{ id: 'a/chat', aliases: ['assistant', 'acme/latest'], endpoints }],
    keys: [{ id: 'k', key: '${KEY}' }],
  });
  const app = fastify();
  await app.register(listModels(fixed({ modelLists: modelListsOf(config) }), notMeasured));
  const statusOf = async (name: string) => {
    const response = await app.inject(`/models/${name}`);
    return [response.statusCode, response.statusCode === 200 ? response.json().id : null];
  };

  for (const name of ['a/chat', 'assistant', 'acme/latest', 'assistant:nitro']) expect([name, await statusOf(name)]).toEqual([name, [200, 'a/chat']]);
  expect(modelListsOf(config).one('acme/none')).toBeNull();
  await app.close();
});
