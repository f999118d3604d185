import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { OpenAIEmbeddings } from '@langchain/openai';
import { OpenRouter } from '@openrouter/sdk';
import { embedMany } from 'ai';
import OpenAI, { BadRequestError } from 'openai';
import { describe, expect, it } from 'vitest';
import { CHAT_MODEL, EMBEDDING_MODEL, SCRIPTED_MODEL, useEmbeddingRouter } from './embedding-router.ts';
import { vectorOf } from './embedding-upstream.ts';

const router = useEmbeddingRouter();
const client = () => new OpenAI({ baseURL: router.baseUrl, apiKey: router.apiKey, maxRetries: 0 });
const TEXTS = ['one', 'three', 'twelve'];
const VECTORS = TEXTS.map((text) => vectorOf(text, 4));

describe('the openai client', () => {
  it('asks for base64 by default and decodes what it gets, in the order of its texts', async () => {
    router.first.replyWith({});
    const { data, response } = await client().embeddings.create({ model: EMBEDDING_MODEL, input: TEXTS }).withResponse();

    expect(data.data.map(({ embedding }) => Array.from(embedding))).toEqual(VECTORS);
    expect(data.data.map(({ index, object }) => [index, object])).toEqual(TEXTS.map((_, index) => [index, 'embedding']));
    expect(data).toMatchObject({ object: 'list', model: EMBEDDING_MODEL, usage: { prompt_tokens: 14, total_tokens: 14 } });
    expect(response.headers.get('x-generation-id')).toMatch(/^gen-/);
    expect(router.first.requests).toMatchObject([{ model: 'upstream-model', input: TEXTS, encoding_format: 'base64' }]);
  });

  it('gets the same vectors as numbers, whatever the upstream sends', async () => {
    for (const sendsNumbers of [true, false]) {
      router.first.replyWith({ sendsNumbers });
      const { data } = await client().embeddings.create({ model: EMBEDDING_MODEL, input: TEXTS, encoding_format: 'float' });
      expect(data.map(({ embedding }) => embedding.map(Math.fround))).toEqual(VECTORS);
      const decoded = await client().embeddings.create({ model: EMBEDDING_MODEL, input: TEXTS });
      expect(decoded.data.map(({ embedding }) => Array.from(embedding))).toEqual(VECTORS);
    }
  });

  it('has one text, token ids, and fewer dimensions', async () => {
    router.first.replyWith({});
    const one = await client().embeddings.create({ model: EMBEDDING_MODEL, input: 'one', dimensions: 2 });
    const ids = await client().embeddings.create({ model: EMBEDDING_MODEL, input: [7, 8, 9] });
    const lists = await client().embeddings.create({ model: EMBEDDING_MODEL, input: [[7, 8], [9]] });

    expect([one, ids, lists].map(({ data }) => data.map(({ embedding }) => Array.from(embedding)))).toEqual([
      [vectorOf('one', 2)],
      [vectorOf([7, 8, 9], 4)],
      [vectorOf([7, 8], 4), vectorOf([9], 4)],
    ]);
    expect(router.first.requests.map(({ input }) => input)).toEqual([['one'], [[7, 8, 9]], [[7, 8], [9]]]);
  });

  it('gets an error that names the model for a chat on it, and for vectors of a model that chats', async () => {
    const chat = client().chat.completions.create({ model: EMBEDDING_MODEL, messages: [{ role: 'user', content: 'Hello' }] });
    await expect(chat).rejects.toMatchObject({ status: 400, param: 'model', message: expect.stringContaining('/embeddings') });
    const vectors = client().embeddings.create({ model: CHAT_MODEL, input: 'Hello' });
    await expect(vectors).rejects.toMatchObject({ status: 400, param: 'model', message: expect.stringContaining('/chat/completions') });
    await expect(vectors).rejects.toBeInstanceOf(BadRequestError);
  });

  it('finds the model in the list', async () => {
    const model = await client().models.retrieve(EMBEDDING_MODEL);
    expect(model).toMatchObject({ id: EMBEDDING_MODEL, architecture: { output_modalities: ['embeddings'] }, supported_parameters: [] });
  });
});

it('the client of @openrouter/sdk reads the vectors and the list of their models', async () => {
  router.first.replyWith({});
  const sdk = new OpenRouter({ apiKey: router.apiKey, serverURL: router.baseUrl, retryConfig: { strategy: 'none' } });
  const given = await sdk.embeddings.generate({ requestBody: { model: EMBEDDING_MODEL, input: TEXTS, encodingFormat: 'float' } });
  if (typeof given === 'string') throw new Error('the answer is a text');
  const models = await sdk.embeddings.listModels();

  expect(given.data.map(({ embedding }) => Array.from(embedding, Number).map(Math.fround))).toEqual(VECTORS);
  expect(given.usage).toMatchObject({ promptTokens: 14, totalTokens: 14, cost: 0.000_014 });
  expect(JSON.stringify(models)).toContain(EMBEDDING_MODEL);
  expect(JSON.stringify(models)).not.toContain(CHAT_MODEL);
});

it('embedMany of ai gets a vector per text', async () => {
  router.first.replyWith({});
  const provider = createOpenAICompatible({ name: 'switchyard', baseURL: router.baseUrl, apiKey: router.apiKey });
  const { embeddings, usage } = await embedMany({ model: provider.textEmbeddingModel(EMBEDDING_MODEL), values: TEXTS, maxRetries: 0 });

  expect(embeddings.map((vector) => vector.map(Math.fround))).toEqual(VECTORS);
  expect(usage.tokens).toBe(14);
});

it('OpenAIEmbeddings of LangChain gets a vector per document, and one of a query', async () => {
  router.first.replyWith({});
  const model = new OpenAIEmbeddings({ model: EMBEDDING_MODEL, apiKey: router.apiKey, configuration: { baseURL: router.baseUrl }, maxRetries: 0 });

  expect((await model.embedDocuments(TEXTS)).map((vector) => Array.from(vector))).toEqual(VECTORS);
  expect(Array.from(await model.embedQuery('one'))).toEqual(VECTORS[0]);
});

it('the scripted model gives equal vectors for equal texts, and nearer ones for texts that share words', async () => {
  const texts = [
    'How do I return a pair of shoes?',
    'Returning shoes: how does it work?',
    'The weather is fine in Lisbon.',
    'How do I return a pair of shoes?',
  ];
  const { data } = await client().embeddings.create({ model: SCRIPTED_MODEL, input: texts });
  const [question = [], near = [], far = [], again = []] = data.map(({ embedding }) => Array.from(embedding));
  const product = (one: number[], other: number[]) => one.reduce((sum, value, at) => sum + value * (other[at] ?? 0), 0);

  expect(again).toEqual(question);
  expect(product(question, question)).toBeCloseTo(1, 5);
  expect(product(question, near)).toBeGreaterThan(product(question, far) + 0.2);
});
