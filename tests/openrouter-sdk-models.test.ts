import { OpenRouter } from '@openrouter/sdk';
import { BadRequestResponseError, NotFoundResponseError } from '@openrouter/sdk/models/errors';
import OpenAI from 'openai';
import { OpenRouter as OlderOpenRouter } from 'openrouter-sdk-0.3';
import { describe, expect, it } from 'vitest';
import { openMemoryBus } from '../bus/memory/memory-bus.ts';
import { KEY } from '../services/router-gateway/test-support/harness.ts';
import { useGateway } from '../services/router-gateway/test-support/use-gateway.ts';
import { systemClock } from '../shared/clock.ts';
import { openTestDatabase } from '../shared/storage/pglite/test-support/open-test-database.ts';

const gateway = useGateway(async () => {
  const database = await openTestDatabase();
  const bus = await openMemoryBus({ database, clock: systemClock });
  return { bus, close: () => bus.close().then(() => database.close()) };
});

const listen = async () => `${await gateway.opened.app.listen({ host: '127.0.0.1', port: 0 })}/api/v1`;
/** The clients check every answer with the schemas of their version, and throw when one does not fit. */
const newer = async () => new OpenRouter({ apiKey: KEY, serverURL: await listen(), retryConfig: { strategy: 'none' } });
const older = async () => new OlderOpenRouter({ apiKey: KEY, serverURL: await listen(), retryConfig: { strategy: 'none' } });
const ids = (data: readonly { id: string }[]) => data.map(({ id }) => id);

describe('the client of @openrouter/sdk 1.3', () => {
  it('reads all pages of a filtered list', async () => {
    const pages = await (await newer()).models.list({ limit: 1, sort: 'context-high-to-low', supportedParameters: 'temperature', offset: null });
    const read: string[][] = [];
    for await (const { result } of pages) read.push(ids(result.data));

    expect(read).toEqual([['acme/large'], ['acme/small'], []]);
  });

  it('reads the count, the list of the caller, one model, the providers, and endpoints without retention', async () => {
    const { models, providers, endpoints } = await newer();

    expect((await models.count({ outputModalities: 'text' })).data.count).toBe(2);
    expect(ids((await models.listForUser({ bearer: KEY })).result.data)).toEqual(['acme/large', 'acme/small']);
    expect((await models.get({ author: 'acme', slug: 'small' })).data.id).toBe('acme/small');
    expect((await providers.list()).data).toEqual([
      { name: 'scripted', slug: 'scripted', privacyPolicyUrl: null, termsOfServiceUrl: null, statusPageUrl: null },
    ]);
    expect((await endpoints.listZdrEndpoints()).data.map(({ modelId, status }) => [modelId, status])).toEqual([
      ['acme/large', 0],
      ['acme/large', 0],
      ['acme/small', 0],
    ]);
  });

  it('reads refusals', async () => {
    const { models } = await newer();

    await expect(models.list({ limit: 5_000 })).rejects.toBeInstanceOf(BadRequestResponseError);
    await expect(models.get({ author: 'acme', slug: 'none' })).rejects.toBeInstanceOf(NotFoundResponseError);
  });
});

describe('the client of @openrouter/sdk 0.3', () => {
  it('reads lists, endpoints and providers', async () => {
    const { models, providers, endpoints } = await older();

    expect(ids((await models.list({ supportedParameters: 'tools' })).data)).toEqual(['acme/large', 'acme/small']);
    expect(ids((await models.list({ category: 'programming' })).data)).toEqual([]);
    expect((await models.count()).data.count).toBe(2);
    expect(ids((await models.listForUser({ bearer: KEY })).data)).toEqual(['acme/large', 'acme/small']);
    expect((await providers.list()).data.map(({ slug }) => slug)).toEqual(['scripted']);
    expect((await endpoints.list({ author: 'acme', slug: 'large' })).data.endpoints.map(({ tag }) => tag)).toEqual(['scripted', 'scripted']);
    expect((await endpoints.listZdrEndpoints()).data).toHaveLength(3);
  });
});

describe('the client of openai', () => {
  it('reads the list and one model', async () => {
    const { models } = new OpenAI({ baseURL: await listen(), apiKey: KEY });
    const read: string[] = [];
    for await (const { id } of models.list()) read.push(id);

    expect(read).toEqual(['acme/large', 'acme/small']);
    expect(await models.retrieve('acme/large')).toMatchObject({ id: 'acme/large', object: 'model', owned_by: 'acme' });
  });
});
