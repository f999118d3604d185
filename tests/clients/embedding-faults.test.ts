import OpenAI from 'openai';
import { beforeEach, describe, expect, it } from 'vitest';
import { readFrame } from '../../bus/messages/frame.ts';
import type { RouterCall } from '../../bus/messages/router.ts';
import { addresses, subjectOf } from '../../bus/subjects.ts';
import { environment } from '../../services/router-gateway/test-support/harness.ts';
import { ulid } from '../../shared/ids.ts';
import { hashOfSecret } from '../../shared/keys/caller-key.ts';
import { eventually } from '../helpers/eventually.ts';
import { EMBEDDING_MODEL, RATED_KEY, SMALL_BATCH, useEmbeddingRouter } from './embedding-router.ts';
import { type EmbeddingReply, vectorOf } from './embedding-upstream.ts';

const router = useEmbeddingRouter();
const client = (apiKey = router.apiKey) => new OpenAI({ baseURL: router.baseUrl, apiKey, maxRetries: 0 });
const TEXTS = ['one', 'three', 'twelve', 'a', 'bb'];
const VECTORS = TEXTS.map((text) => vectorOf(text, 4));
/** Its order is kept whatever has failed before. */
const provider = { order: ['first', 'second'] };
const asked = { model: EMBEDDING_MODEL, input: TEXTS, provider };

beforeEach(() => {
  router.first.replyWith({});
  router.second.replyWith({});
});

async function ledgerRow(id: string): Promise<object> {
  return eventually(async () => {
    const { rows } = await router.database.query('select * from usage_ledger where generation_id = $1', [id]);
    return rows[0];
  });
}

async function generation(id: string): Promise<{ provider_responses: object[] }> {
  const response = await fetch(`${router.baseUrl}/generation?id=${id}`, { headers: { authorization: `Bearer ${router.apiKey}` } });
  return Object(await response.json()).data;
}

describe('another endpoint gives the vectors', () => {
  it.each<[string, EmbeddingReply]>([
    ['refuses with 500', { status: 500, body: { error: { message: 'broken' } } }],
    ['is limited', { status: 429, body: { error: { message: 'slow down' } } }],
    ['sends too few', { missing: 1 }],
    ['sends vectors of other dimensions', { dimensions: 3 }],
    ['sends no list', { body: { object: 'list' } }],
    ['sends an index twice', { body: { data: TEXTS.map(() => ({ index: 0, embedding: [1, 2, 3, 4] })) } }],
    ['sends an index beyond the list', { body: { data: TEXTS.map((_, at) => ({ index: at + 1, embedding: [1, 2, 3, 4] })) } }],
    ['sends base64 of half a float', { body: { data: TEXTS.map((_, index) => ({ index, embedding: 'AAAAAAA=' })) } }],
    ['sends an error with 200', { body: { error: { message: 'no capacity', code: 503 } } }],
    ['is silent', { isSilent: true }],
  ])('DESIGN 8: where the first %s, and one call is billed', async (_, reply) => {
    router.first.replyWith(reply);
    const { data, response } = await client().embeddings.create(asked).withResponse();
    const id = response.headers.get('x-generation-id') ?? '';

    expect(data.data.map(({ embedding }) => Array.from(embedding))).toEqual(VECTORS);
    expect(router.second.requests.map(({ input }) => input.length)).toEqual([SMALL_BATCH, SMALL_BATCH, 1]);
    expect(await ledgerRow(id)).toMatchObject({ key_id: 'one', provider: 'second', model: EMBEDDING_MODEL });
    const shown = await generation(id);
    expect(shown).toMatchObject({ id, api_type: 'embeddings', tokens_prompt: 17, tokens_completion: 0, provider_name: 'Second', total_cost: 0.000_017 });
    expect(shown.provider_responses).toMatchObject([{ provider_name: 'First' }, { provider_name: 'Second', status: 200 }]);
  });

  it('also where a later request of the list fails, from its beginning', async () => {
    router.first.replyWith({ status: 500, body: {} });
    router.second.replyWith({}, { missing: 1 });
    await expect(client().embeddings.create(asked)).rejects.toMatchObject({ status: 502, code: 502 });
    expect(router.second.requests).toHaveLength(2);
  });
});

it('states what it cost', async () => {
  const { usage } = await client().embeddings.create({ ...asked, encoding_format: 'float' });
  expect(usage).toEqual({
    ...{ prompt_tokens: 17, total_tokens: 17, cost: 0.000_017, is_byok: false },
    cost_details: { upstream_inference_cost: null, upstream_inference_prompt_cost: 0.000_017, upstream_inference_completions_cost: 0 },
  });
});

it('the request to the upstream ends when the client leaves', async () => {
  router.first.replyWith({ isSilent: true });
  const before = router.first.aborts;
  const controller = new AbortController();
  const asking = client().embeddings.create(asked, { signal: controller.signal });
  await eventually(() => router.first.requests.length === 1);
  controller.abort();

  await expect(asking).rejects.toThrow();
  await eventually(() => router.first.aborts === before + 1);
  expect(router.second.requests).toEqual([]);
});

it('no further part of a list is asked for when the client leaves in between', async () => {
  router.second.replyWith({}, { isSilent: true });
  const before = router.second.aborts;
  const controller = new AbortController();
  const atSecond = { ...asked, provider: { order: ['second', 'first'] } };
  const asking = client().embeddings.create(atSecond, { signal: controller.signal });
  await eventually(() => router.second.requests.length === 2);
  controller.abort();

  await expect(asking).rejects.toThrow();
  await eventually(() => router.second.aborts === before + 1);
  // The next call is behind whatever would have followed.
  await client().embeddings.create(asked);
  expect([router.second.requests.length, router.first.requests.length]).toEqual([2, 1]);
});

it('is 429 beyond the requests per minute of its key, and nothing is sent', async () => {
  await client(RATED_KEY).embeddings.create(asked);
  const refused = client(RATED_KEY).embeddings.create(asked);

  await expect(refused).rejects.toMatchObject({ status: 429 });
  const { headers } = (await refused.catch((error: unknown) => error)) as { headers: Headers };
  expect([Number(headers.get('retry-after')) > 0, headers.get('x-ratelimit-limit')]).toEqual([true, '1']);
  expect(router.first.requests).toHaveLength(1);
});

describe('a key with a credit limit', () => {
  it('gets 402 for what it can not pay, and nothing is sent', async () => {
    const costly = client(environment.KEY_TWO).embeddings.create({ model: EMBEDDING_MODEL, input: 'x'.repeat(400) });
    await expect(costly).rejects.toMatchObject({ status: 402, type: 'payment_required' });
    expect(router.first.requests).toEqual([]);
  });

  it('pays for the inputs alone, and its reservation ends', async () => {
    const { response } = await client(environment.KEY_TWO).embeddings.create(asked).withResponse();

    expect(await ledgerRow(response.headers.get('x-generation-id') ?? '')).toMatchObject({ key_id: 'two' });
    await eventually(async () => (await router.database.query('select 1 from reservations')).rows.length === 0);
    const { rows } = await router.database.query("select total_nano::int as total from key_spend where key_id = 'two'");
    expect(rows).toEqual([{ total: 17_000 }]);
  });
});

describe('a call over the bus', () => {
  const publish = async (secret: string, fields: Partial<RouterCall> = {}) => {
    const nowMs = Date.now();
    const call: RouterCall = {
      ...{
        v: 1,
        callId: `call_${ulid()}`,
        origin: `retrieval${ulid()}`,
        want: 'body',
        surface: 'embeddings',
        deadlineAtMs: nowMs + 60_000,
        createdAtMs: nowMs,
      },
      ...{ detached: true, republished: false, keyId: `sha256:${hashOfSecret(secret)}`, traceparent: null, maxTokens: null, reply: null },
      request: { model: EMBEDDING_MODEL, provider, messages: TEXTS.map((content) => ({ role: 'user', content })) },
      embedding: { format: 'float', dimensions: null, inputType: 'search_document', tokens: null },
      ...fields,
    };
    const bodies: { status: number; body: unknown }[] = [];
    const reading = router.bus.tokens.subscribe(subjectOf(addresses.tokens, call.origin, call.callId), (_, bytes) => {
      const frame = readFrame(call.callId, bytes);
      if (frame?.kind === 'body') bodies.push({ status: frame.status, body: JSON.parse(Buffer.from(frame.body).toString('utf8')) });
    });
    await router.bus.work.publish('router.call', call.callId, JSON.stringify(call));
    const [answer] = await eventually(() => bodies.length > 0 && bodies);
    await reading.stop();
    return { callId: call.callId, answer };
  };

  it('answers with the vectors, under the key that the hash names', async () => {
    const { callId, answer } = await publish(environment.KEY_ONE);

    expect(answer).toMatchObject({
      status: 200,
      body: { object: 'list', id: callId, data: VECTORS.map((_, index) => ({ index })), usage: { prompt_tokens: 17 } },
    });
    expect(await ledgerRow(callId)).toMatchObject({ key_id: 'one', prompt_tokens: expect.anything() });
  });

  it('is refused under a key that is not known, and for credit that does not suffice', async () => {
    const messages = [{ role: 'user' as const, content: 'x'.repeat(400) }];
    expect((await publish('sk-unknown')).answer).toMatchObject({ status: 401, body: { error: { code: 401, type: 'authentication' } } });
    const costly = await publish(environment.KEY_TWO, { request: { model: EMBEDDING_MODEL, messages } });
    expect(costly.answer).toMatchObject({ status: 402, body: { error: { type: 'payment_required' } } });
  });
});
