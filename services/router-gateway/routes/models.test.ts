import { fastify } from 'fastify';
import { expect, it } from 'vitest';
import { routerConfig } from '#shared/config/router-config.ts';
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
  await app.register(listModels(config));
  const { data } = (await app.inject('/models')).json();
  await app.close();

  expect(data.map(({ architecture }: { architecture: object }) => architecture)).toMatchObject([
    { modality: 'text+image+video->text', input_modalities: ['text', 'image', 'video'], output_modalities: ['text'] },
    { modality: 'text->text', input_modalities: ['text'], output_modalities: ['text'] },
  ]);
});
