import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GoogleGenAI } from '@google/genai';
import OpenAI from 'openai';
import { describe, expect, it, onTestFinished } from 'vitest';
import { gemini } from '../../services/router-worker/providers/gemini/adapter.ts';
import { openAiCompatible } from '../../services/router-worker/providers/openai-compatible/adapter.ts';
import { PROFILES } from '../../services/router-worker/providers/openai-compatible/profiles.ts';
import type { OpenedAdapter, VectorCall } from '../../services/router-worker/providers/provider.ts';
import { systemClock } from '../../shared/clock.ts';
import { failureOf } from '../../shared/errors/switchyard-error.ts';
import { openOutbound } from '../../shared/http/outbound.ts';
import { eventually } from '../helpers/eventually.ts';
import { openVectorUpstream, type VectorApi } from './vector-upstream.ts';

const API_KEY = 'sk-loopback-0123456789';
const MODEL = 'loopback-embedding';
const GENEROUS = { connectMs: 60_000, firstTokenMs: 60_000, idleMs: 60_000 };
const loopback = { slug: 'loopback', name: 'Loopback', connectTimeoutMs: 60_000, clock: systemClock, outbound: openOutbound({}) };
const VECTORS = [
  [1, 0.5, -0.25],
  [2, 0.125, 8],
];

/** As npm openai 6.49.0 has it (CreateEmbeddingResponse); base64 when the request asks for it. */
const openAiApi: VectorApi = {
  answer: (body) => ({
    object: 'list',
    model: MODEL,
    data: VECTORS.map((vector, index) => ({ object: 'embedding', index, embedding: isBase64(body) ? base64Of(vector) : vector })),
    usage: { prompt_tokens: 7, total_tokens: 7 },
  }),
};
/** As npm @google/genai 2.32.0 has it (EmbedContentResponse of batchEmbedContents). */
const geminiApi: VectorApi = { answer: () => ({ embeddings: VECTORS.map((values) => ({ values })) }) };

const isBase64 = (body: unknown) => typeof body === 'object' && body !== null && 'encoding_format' in body && body.encoding_format === 'base64';
const base64Of = (vector: readonly number[]) => Buffer.from(Float32Array.from(vector).buffer).toString('base64');

type Open = (origin: string) => OpenedAdapter;
const openOpenAi =
  (profile: keyof typeof PROFILES): Open =>
  (origin) =>
    openAiCompatible({ ...loopback, baseUrl: `${origin}/v1`, apiKey: API_KEY, profile: PROFILES[profile] });
const openGeminiWith =
  (allowHosts: ReadonlySet<string>): Open =>
  (origin) =>
    gemini({ ...loopback, baseUrl: origin, access: { type: 'key', apiKey: API_KEY }, safety: null, cache: null, outboundRules: { allowHosts } });
const openGemini = openGeminiWith(new Set());

const call: VectorCall = { model: MODEL, inputs: ['one', 'two'], dimensions: null, inputType: null, user: null, timeouts: GENEROUS };

async function open(api: VectorApi, openAdapter: Open) {
  const upstream = await openVectorUpstream(api);
  const adapter = openAdapter(upstream.origin);
  onTestFinished(async () => {
    await adapter.close();
    await upstream.close();
  });
  const embed = async (fields: Partial<VectorCall> = {}, signal: AbortSignal = new AbortController().signal) => {
    if (adapter.embed === undefined) throw new Error('the adapter gives no vectors');
    return adapter.embed({ ...call, ...fields }, signal);
  };
  const failure = (fields: Partial<VectorCall> = {}) =>
    embed(fields).then(
      () => null,
      (error: unknown) => failureOf(error),
    );
  return { upstream, embed, failure };
}

/** Errors as the vendor says them. */
const refusalOf = {
  openai: (message: string) => ({ error: { message, type: 'invalid_request_error', param: null, code: null } }),
  gemini: (message: string) => ({ error: { code: 0, message, status: 'UNKNOWN' } }),
};

describe.each([
  ['the OpenAI profile', openAiApi, openOpenAi('openai'), refusalOf.openai],
  ['the generic profile', openAiApi, openOpenAi('generic'), refusalOf.openai],
  ['Gemini', geminiApi, openGemini, refusalOf.gemini],
] as const)('vectors by %s', (_, api, openAdapter, refusal) => {
  it('come in the order of the inputs, as 32-bit floats', async () => {
    const { embed } = await open(api, openAdapter);
    const { vectors } = await embed();
    expect(vectors).toEqual(VECTORS.map((vector) => Float32Array.from(vector)));
  });

  it.each([
    [400, 'router.provider_refused'],
    [401, 'router.provider_misconfigured'],
    [403, 'router.provider_misconfigured'],
    [404, 'router.provider_misconfigured'],
    [413, 'request.too_large'],
    [429, 'router.provider_rate_limited'],
    [500, 'router.provider_unavailable'],
    [503, 'router.provider_overloaded'],
  ])('fail with the code of a chat for %i, without the key', async (status, code) => {
    const { upstream, failure } = await open(api, openAdapter);
    upstream.plays({ refuse: { status, body: refusal(`no, ${API_KEY}`), headers: { 'retry-after': '7' } } });

    const failed = await failure();
    expect(failed).toMatchObject({ code, details: { status, retryAfterMs: 7_000 } });
    expect(JSON.stringify(failed)).not.toContain(API_KEY);
    expect(upstream.requests).toHaveLength(1);
  });

  it('fail for a prompt that is too long so that a larger context is tried', async () => {
    const { upstream, failure } = await open(api, openAdapter);
    const message = 'This model has a maximum context length of 8192 tokens; the input token count exceeds the maximum number of tokens';
    upstream.plays({ refuse: { status: 400, body: refusal(message) } });
    expect(await failure()).toMatchObject({ code: 'router.context_length' });
  });

  it.each([
    ['hang-up', /can't be reached/],
    ['garbage', /sent an answer that can't be read/],
    ['cut', /broke off/],
    ['endless', /more than 41943040 bytes/],
  ] as const)('fail for an upstream with the fault %s', async (fault, message) => {
    const { upstream, failure } = await open(api, openAdapter);
    upstream.plays({ fault });
    expect(await failure()).toMatchObject({ code: 'router.provider_unavailable', message: expect.stringMatching(message) });
  });

  it.each([
    ['silent', { firstTokenMs: 300 }],
    ['stall', { idleMs: 300 }],
  ] as const)('fail for an upstream with the fault %s, after the time for it', async (fault, limit) => {
    const { upstream, failure } = await open(api, openAdapter);
    upstream.plays({ fault });
    expect(await failure({ timeouts: { ...GENEROUS, ...limit } })).toMatchObject({
      code: 'router.provider_unavailable',
      message: expect.stringMatching(/was silent for 300 ms/),
    });
    await eventually(() => upstream.aborts === 1);
  });

  it.each([[{}], [{ data: [{}], embeddings: [{}] }], [[]], [null], [{ data: 'x', embeddings: 'x' }]])('fail for a body without vectors: %j', async (body) => {
    const { upstream, failure } = await open(api, openAdapter);
    upstream.plays({ body });
    expect(await failure()).toMatchObject({ code: 'router.provider_unavailable' });
  });

  it('close the connection when the caller aborts', async () => {
    const { upstream, embed } = await open(api, openAdapter);
    upstream.plays({ fault: 'silent' });
    const controller = new AbortController();
    const reason = new Error('left');
    // Longer than the test: no time limit may close it.
    const asking = embed({ timeouts: { ...GENEROUS, firstTokenMs: 600_000 } }, controller.signal);
    await eventually(() => upstream.requests.length === 1);
    controller.abort(reason);

    await expect(asking).rejects.toBe(reason);
    await eventually(() => upstream.aborts === 1);
  });
});

describe('a request for vectors', () => {
  it('is that of the openai client, which reads the same answer', async () => {
    const { upstream, embed } = await open(openAiApi, openOpenAi('openai'));
    await embed({ dimensions: 3, user: 'u', inputType: 'query' });
    const client = new OpenAI({ baseURL: `${upstream.origin}/v1`, apiKey: API_KEY, maxRetries: 0 });
    const { data } = await client.embeddings.create({ model: MODEL, input: ['one', 'two'], dimensions: 3, user: 'u' });

    const [ours, theirs] = upstream.requests;
    expect(ours?.body).toEqual(theirs?.body);
    expect([ours?.path, ours?.headers.authorization]).toEqual([theirs?.path, theirs?.headers.authorization]);
    expect(data.map(({ embedding }) => Array.from(embedding))).toEqual(VECTORS);
  });

  it('is that of @google/genai, which reads the same answer', async () => {
    const { upstream, embed } = await open(geminiApi, openGemini);
    await embed({ dimensions: 3, inputType: 'search_query' });
    const client = new GoogleGenAI({ apiKey: API_KEY, httpOptions: { baseUrl: upstream.origin } });
    const config = { outputDimensionality: 3, taskType: 'RETRIEVAL_QUERY' };
    const { embeddings } = await client.models.embedContent({ model: MODEL, contents: ['one', 'two'], config });

    const [ours, theirs] = upstream.requests;
    const withoutRoles = JSON.parse(JSON.stringify(theirs?.body, (key, value) => (key === 'role' ? undefined : value)));
    expect(ours?.body).toEqual(withoutRoles);
    expect([ours?.path, ours?.headers['x-goog-api-key']]).toEqual([theirs?.path.split('?')[0], theirs?.headers['x-goog-api-key']]);
    expect(embeddings?.map(({ values }) => values)).toEqual(VECTORS);
  });

  it('differs by the vendor of an OpenAI-compatible profile', async () => {
    const bodyFor = async (profile: keyof typeof PROFILES, fields: Partial<VectorCall> = {}) => {
      const { upstream, embed } = await open(openAiApi, openOpenAi(profile));
      await embed({ dimensions: 3, user: 'u', inputType: 'query', ...fields });
      return upstream.requests[0];
    };
    expect((await bodyFor('generic'))?.body).toEqual({ model: MODEL, input: ['one', 'two'], dimensions: 3, input_type: 'query', user: 'u' });
    expect((await bodyFor('mistral'))?.body).toEqual({ model: MODEL, input: ['one', 'two'], output_dimension: 3 });
    expect((await bodyFor('vllm'))?.body).toMatchObject({ encoding_format: 'base64', input_type: 'query' });
    expect(await bodyFor('azure-deployments')).toMatchObject({ path: `/v1/deployments/${MODEL}/embeddings`, headers: { 'api-key': API_KEY } });
  });

  it('has token ids, texts of several items as one, and content with pictures as it is', async () => {
    const { upstream, embed } = await open(openAiApi, openOpenAi('openrouter'));
    const text = (content: string) => ({ type: 'text' as const, text: content });
    const picture = { type: 'image_url' as const, image_url: { url: 'data:image/png;base64,AAAA' } };
    await embed({ inputs: [[1, 2], [3]] });
    await embed({
      inputs: [
        [text('a'), text('b')],
        [text('c'), picture],
      ],
    });

    expect(upstream.requests.map(({ body }) => body)).toMatchObject([
      { input: [[1, 2], [3]] },
      { input: ['a\nb', { content: [{ type: 'text', text: 'c' }, picture] }] },
    ]);
  });

  it('to Gemini has pictures as bytes, and a task that it knows alone', async () => {
    const { upstream, embed } = await open(geminiApi, openGemini);
    const content = [
      { type: 'text' as const, text: 'a shoe' },
      { type: 'image_url' as const, image_url: { url: 'data:image/png;base64,AAAA' } },
    ];
    await embed({ inputs: [content, content], inputType: 'CODE_RETRIEVAL_QUERY' });
    await embed({ inputType: 'truncate' });

    const parts = [{ text: 'a shoe' }, { inlineData: { mimeType: 'image/png', data: 'AAAA' } }];
    const request = { model: `models/${MODEL}`, content: { parts }, taskType: 'CODE_RETRIEVAL_QUERY' };
    expect(upstream.requests.map(({ body }) => body)).toEqual([
      { requests: [request, request] },
      { requests: ['one', 'two'].map((text) => ({ model: `models/${MODEL}`, content: { parts: [{ text }] } })) },
    ]);
  });

  it('to Gemini has the bytes of pictures by address, and is refused for one at an address that callers may not reach', async () => {
    const png = Buffer.from('iVBORw0KGgo=', 'base64');
    const pictures = createServer((_, response) => response.writeHead(200, { 'content-type': 'image/png' }).end(png));
    await new Promise<void>((resolve) => pictures.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void pictures.close());
    const host = `127.0.0.1:${(pictures.address() as AddressInfo).port}`;
    const picture = [{ type: 'image_url' as const, image_url: { url: `http://${host}/shoe.png` } }];
    const allowing = await open(geminiApi, openGeminiWith(new Set([host])));
    const refusing = await open(geminiApi, openGemini);

    await allowing.embed({ inputs: ['a shoe', picture] });
    expect(allowing.upstream.requests[0]?.body).toMatchObject({
      requests: [
        { content: { parts: [{ text: 'a shoe' }] } },
        { content: { parts: [{ inlineData: { mimeType: 'image/png', data: png.toString('base64') } }] } },
      ],
    });
    expect(await refusing.failure({ inputs: ['a shoe', picture] })).toMatchObject({
      code: 'router.provider_refused',
      details: { param: 'input[1].content[0].image_url.url' },
    });
    expect(refusing.upstream.requests).toEqual([]);
  });
});

describe('tokens', () => {
  it.each([
    [openAiApi, openOpenAi('openai'), undefined, 7],
    [geminiApi, openGemini, undefined, null],
    [geminiApi, openGemini, { embeddings: [{ values: [1] }, { values: [2] }], usageMetadata: { promptTokenCount: 9 } }, 9],
    [openAiApi, openOpenAi('generic'), { data: [{ embedding: [1] }, { embedding: [2] }] }, null],
  ])('are those that the upstream counts', async (api, openAdapter, body, tokens) => {
    const { upstream, embed } = await open(api, openAdapter);
    upstream.plays({ body });
    expect((await embed()).promptTokens).toBe(tokens);
  });
});

it('of Vertex AI are predictions, one input each, with a token from a file', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-vertex-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const tokenFile = join(folder, 'token');
  writeFileSync(tokenFile, 'ya29.token');
  const access = { type: 'vertex', project: 'p1', location: 'europe-west1', tokenFile } as const;
  // As npm @google/genai 2.32.0 reads it (embedContentResponseFromVertex).
  const answer = () => ({ predictions: VECTORS.map((values) => ({ embeddings: { values, statistics: { token_count: 4, truncated: false } } })) });
  const { upstream, embed, failure } = await open({ answer }, (origin) =>
    gemini({ ...loopback, baseUrl: origin, access, safety: null, cache: null, outboundRules: { allowHosts: new Set() } }),
  );

  expect(await embed({ dimensions: 3, inputType: 'document' })).toEqual({ vectors: VECTORS.map((vector) => Float32Array.from(vector)), promptTokens: 8 });
  expect(upstream.requests).toMatchObject([
    {
      path: `/v1/projects/p1/locations/europe-west1/publishers/google/models/${MODEL}:predict`,
      headers: { authorization: 'Bearer ya29.token' },
      body: { instances: ['one', 'two'].map((content) => ({ content, task_type: 'RETRIEVAL_DOCUMENT' })), parameters: { outputDimensionality: 3 } },
    },
  ]);
  const picture = [{ type: 'image_url' as const, image_url: { url: 'data:image/png;base64,AAAA' } }];
  expect(await failure({ inputs: [picture] })).toMatchObject({ code: 'router.provider_refused', details: { param: 'input[0]' } });
});
