import { describe, expect, it } from 'vitest';
import { openMemoryBus } from '../bus/memory/memory-bus.ts';
import { authorization, useGateway } from '../services/router-gateway/test-support/use-gateway.ts';
import { systemClock } from '../shared/clock.ts';
import { routerConfig } from '../shared/config/router-config.ts';
import { embeddingLimits, embeddingRequest } from '../shared/contracts/router/embedding-request.ts';
import { openTestDatabase } from '../shared/storage/pglite/test-support/open-test-database.ts';
import { embeddingTables, invalidCasesOf, validCasesOf } from './helpers/request-tables.ts';

const gateway = useGateway(async () => {
  const database = await openTestDatabase();
  const bus = await openMemoryBus({ database, clock: systemClock });
  return { bus, close: () => bus.close().then(() => database.close()) };
});

const MODEL = 'acme/vectors';
const config = routerConfig.parse({
  providers: [{ slug: 'scripted', kind: 'scripted' }],
  models: [
    { id: MODEL, embeddings: {}, endpoints: [{ provider: 'scripted', upstream_model: 'v' }] },
    { id: 'acme/chat', endpoints: [{ provider: 'scripted', upstream_model: 'c' }] },
  ],
  keys: [{ id: 'one', key: '${KEY_ONE}' }],
});

const post = (payload: object) => gateway.opened.app.inject({ method: 'POST', url: '/api/v1/embeddings', headers: { authorization }, payload });
const invalidCases = invalidCasesOf(embeddingTables);

describe('a request for embeddings', () => {
  it('has a row for every field of the schema', () => {
    expect(embeddingTables.flatMap(({ rows }) => rows.map(({ field }) => field))).toEqual(Object.keys(embeddingRequest.shape));
  });

  it.each(validCasesOf(embeddingTables))('$field may be $shown', ({ request }) => {
    expect(embeddingRequest.safeParse(request)).toEqual({ success: true, data: request });
  });

  it('answers 400 for each invalid value, with its path in the message and in param', async () => {
    await gateway.reopen({ config });
    expect(invalidCases.length).toBeGreaterThan(50);
    for (const { field, shown, request, param } of invalidCases) {
      const response = await post(Object(request));
      const { error } = response.json();
      expect([field, shown, response.statusCode, error.code, error.type, error.param]).toEqual([field, shown, 400, 400, 'invalid_request', param]);
      expect(error.message.startsWith(`${param} `)).toBe(true);
    }
  });

  it('may have as many inputs and tokens as the limits say, and not one more', async () => {
    await gateway.reopen({ config });
    const { inputs, tokens } = embeddingLimits;
    const refused = async (input: unknown) => (await post({ model: MODEL, input })).json().error;
    expect(await refused(Array.from({ length: inputs + 1 }, () => 'x'))).toMatchObject({
      code: 400,
      param: 'input',
      message: `input must have at most ${inputs} inputs`,
    });
    expect(await refused('x'.repeat(tokens * 4 + 1))).toMatchObject({ code: 400, param: 'input', message: expect.stringMatching(/300000 tokens/) });
    expect(await refused(Array.from({ length: tokens + 1 }, () => 1))).toMatchObject({
      code: 400,
      param: 'input',
      message: expect.stringMatching(/300000 tokens/),
    });
    // One issue for any number of wrong values.
    expect(await refused(Array.from({ length: tokens }, () => 'x').fill(1 as never, 0, 1))).toMatchObject({ code: 400, param: 'input[1]' });
    for (const input of [Array.from({ length: inputs }, () => 'x'), 'x'.repeat(tokens * 4), Array.from({ length: tokens }, () => 1)]) {
      expect(embeddingRequest.safeParse({ model: MODEL, input }).success).toBe(true);
    }
  });

  it('is sent as a call whose inputs are messages, and names the fields without effect', async () => {
    await gateway.reopen({ config });
    const asked = { model: MODEL, input: ['a', 'b'], dimensions: 8, encoding_format: 'base64', input_type: 'query', user: 'u', truncate: 'END', stream: true };
    const answering = gateway.answerNext();
    const response = await post(asked);

    expect(await answering).toMatchObject({
      ...{ surface: 'embeddings', want: 'body', keyId: 'one', maxTokens: null },
      request: { model: MODEL, user: 'u', messages: ['a', 'b'].map((content) => ({ role: 'user', content })) },
      embedding: { format: 'base64', dimensions: 8, inputType: 'query', tokens: null },
    });
    expect(response.statusCode).toBe(200);
    expect(response.headers).toMatchObject({ 'x-switchyard-ignored': 'truncate, stream', 'x-generation-id': expect.stringMatching(/^gen-/) });
  });

  it('carries token ids beside a message without text, also more than a chat may have values', async () => {
    await gateway.reopen({ config });
    const input = Array.from({ length: embeddingLimits.tokens }, (_, at) => at % 50_000);
    const answering = gateway.answerNext();
    await post({ model: MODEL, input });

    const { request, embedding } = await answering;
    expect(request.messages).toEqual([{ role: 'user', content: '' }]);
    expect([embedding?.tokens?.length, embedding?.tokens?.[0]?.join() === input.join()]).toEqual([1, true]);
  });

  it('needs a model of vectors', async () => {
    await gateway.reopen({ config });
    expect((await post({ model: 'acme/none', input: 'x' })).json().error).toMatchObject({
      code: 400,
      param: 'model',
      message: 'acme/none is not a valid model ID',
    });
    expect((await post({ model: 'acme/chat', input: 'x' })).json().error).toMatchObject({
      code: 400,
      param: 'model',
      message: expect.stringMatching(/^model: acme\/chat/),
    });
    const chat = await gateway.post({ model: MODEL, messages: [{ role: 'user', content: 'x' }] });
    expect(chat.json().error).toMatchObject({ code: 400, param: 'model', message: expect.stringMatching(/^model: acme\/vectors is an embedding model/) });
  });
});
