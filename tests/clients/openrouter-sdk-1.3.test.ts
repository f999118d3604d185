import { OpenRouter } from '@openrouter/sdk';
import type { ChatRequest, ChatResult, ChatStreamChunk } from '@openrouter/sdk/models';
import { BadRequestResponseError, TooManyRequestsResponseError } from '@openrouter/sdk/models/errors';
import { describe, expect, it } from 'vitest';
import { MODEL, useRouter } from './router-under-test.ts';
import * as answers from './upstream-answers.ts';

/** It checks every answer and every chunk with its schemas, and requires more fields than 0.3. */
const router = useRouter();
const client = () => new OpenRouter({ apiKey: router.apiKey, serverURL: router.baseUrl, retryConfig: { strategy: 'none' } });
const asked: ChatRequest = { model: MODEL, messages: [{ role: 'user', content: 'How is the weather?' }] };

async function wholeOf(fields: Partial<ChatRequest> = {}): Promise<ChatResult> {
  const result = await client().chat.send({ chatRequest: { ...asked, ...fields, stream: false } });
  if (!('object' in result)) throw new Error('the answer is a stream');
  return result;
}

async function chunksOf(fields: Partial<ChatRequest> = {}): Promise<ChatStreamChunk[]> {
  const result = await client().chat.send({ chatRequest: { ...asked, ...fields, stream: true } });
  if ('object' in result) throw new Error('the answer is no stream');
  const chunks: ChatStreamChunk[] = [];
  for await (const chunk of result) chunks.push(chunk);
  return chunks;
}

describe('the client of @openrouter/sdk 1.3', () => {
  it('reads a whole answer with reasoning, image, fingerprint, tier and usage', async () => {
    router.upstream.replyWith({ chunks: answers.richAnswer });
    const { choices, systemFingerprint, serviceTier, usage } = await wholeOf();

    expect([systemFingerprint, serviceTier]).toEqual(['fp_1', 'default']);
    expect(choices[0]).toMatchObject({ finishReason: 'stop', message: { content: answers.TEXT, reasoning: answers.REASONING } });
    expect(choices[0]?.message.reasoningDetails).toMatchObject([{ type: 'reasoning.text', text: answers.REASONING, signature: answers.SIGNATURE, index: 0 }]);
    expect(choices[0]?.message.images).toMatchObject([{ imageUrl: { url: answers.IMAGE } }]);
    expect(usage).toMatchObject({ promptTokens: 20, completionTokens: 12, promptTokensDetails: { cachedTokens: 5 } });
  });

  it('reads every chunk of a stream', async () => {
    router.upstream.replyWith({ chunks: answers.richAnswer });
    const chunks = await chunksOf();
    const deltas = chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta));

    expect(deltas.map(({ content }) => content ?? '').join('')).toBe(answers.TEXT);
    expect(deltas.map(({ reasoning }) => reasoning ?? '').join('')).toBe(answers.REASONING);
    expect(new Set(chunks.map(({ systemFingerprint, serviceTier }) => `${systemFingerprint} ${serviceTier}`))).toEqual(new Set(['fp_1 default']));
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { totalTokens: 32 } });
  });

  it('reads a stream of an upstream that names no fingerprint and no tier', async () => {
    const nameless = answers.richAnswer.map((chunk) => ({ ...chunk, system_fingerprint: null, service_tier: null }));
    router.upstream.replyWith({ chunks: nameless });

    expect((await chunksOf()).map(({ systemFingerprint }) => systemFingerprint)).toEqual(expect.arrayContaining([undefined]));
    expect((await wholeOf()).systemFingerprint).toBeNull();
  });

  it('has tool calls, sound and refusals with log probabilities, whole and streamed', async () => {
    router.upstream.replyWith({ chunks: answers.toolAnswer });
    expect((await wholeOf({ tools: [answers.weatherTool] })).choices[0]).toMatchObject({
      finishReason: 'tool_calls',
      message: { toolCalls: [{ id: 'call_a', function: { name: 'look', arguments: '{"at":"sky"}' } }, { id: 'call_b' }] },
    });
    expect((await chunksOf({ tools: [answers.weatherTool] })).flatMap(({ choices }) => choices[0]?.delta.toolCalls ?? [])).toHaveLength(5);

    router.upstream.replyWith({ chunks: answers.loudAnswer });
    expect((await wholeOf()).choices[0]?.message.audio).toMatchObject({ id: 'audio_1', transcript: 'Good day', expiresAt: 1_763_800_000 });
    expect((await chunksOf()).map(({ choices }) => choices[0]?.delta.audio?.transcript ?? '').join('')).toBe('Good day');

    router.upstream.replyWith({ chunks: answers.refusedAnswer });
    expect((await wholeOf()).choices[0]).toMatchObject({ message: { refusal: "I can't." }, logprobs: { refusal: [{ token: 'I ' }, { token: "can't." }] } });
    expect((await chunksOf()).flatMap(({ choices }) => choices[0]?.logprobs?.refusal ?? [])).toHaveLength(2);
  });

  it('sends reasoning and marks for caches as they are', async () => {
    router.upstream.replyWith({ chunks: answers.richAnswer });
    const { choices } = await wholeOf();
    const message = choices[0]?.message;
    if (message === undefined) throw new Error('the answer has no message');
    const marked = { type: 'text' as const, text: 'And tomorrow?', cacheControl: { type: 'ephemeral' as const, ttl: '1h' as const } };
    await wholeOf({ messages: [...asked.messages, message, { role: 'user', content: [marked] }], reasoning: { effort: 'low', summary: 'concise' } });

    expect(router.upstream.requests.at(-1)).toMatchObject({
      reasoning: { effort: 'low', summary: 'concise' },
      messages: [
        {},
        { reasoning: answers.REASONING, reasoning_details: answers.DETAILS },
        { content: [{ type: 'text', text: 'And tomorrow?', cache_control: { type: 'ephemeral', ttl: '1h' } }] },
      ],
    });
  });

  it('throws the error of its status before the first content', async () => {
    router.upstream.replyWith(answers.refusal);
    for (const work of [wholeOf(), chunksOf()]) {
      const error = await work.catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(TooManyRequestsResponseError);
      expect(error).toMatchObject({ statusCode: 429, error: { code: 429 } });
    }
    const invalid = await wholeOf({ responseFormat: { type: 'grammar', grammar: 'root ::= "x"' } }).catch((thrown: unknown) => thrown);
    expect(invalid).toBeInstanceOf(BadRequestResponseError);
    expect(invalid).toMatchObject({ error: { code: 400, message: expect.stringContaining('grammar') } });
  });

  it('reads the error chunk behind the text, and a whole answer that ends with an error', async () => {
    router.upstream.replyWith({ chunks: answers.brokenAnswer });
    const chunks = await chunksOf();

    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe('Half an ');
    expect(chunks.at(-1)).toMatchObject({ error: { code: 502, metadata: { errorType: 'provider_unavailable' } }, choices: [{ finishReason: 'error' }] });
    expect((await wholeOf()).choices[0]).toMatchObject({ finishReason: 'error', message: { content: 'Half an ' } });
  });

  it('reads where a call went, whole, streamed and in an error', async () => {
    const wish = { xOpenRouterMetadata: 'enabled' as const };
    const metadata = { requested: MODEL, strategy: 'direct', region: null, attempt: 1, isByok: false };
    router.upstream.replyWith({ chunks: answers.richAnswer });
    const whole = await client().chat.send({ ...wish, chatRequest: { ...asked, stream: false } });
    expect(whole).toMatchObject({
      openrouterMetadata: {
        ...metadata,
        endpoints: { total: 1, available: [{ provider: 'Loopback', model: MODEL, selected: true }] },
        attempts: [{ provider: 'Loopback', model: MODEL, status: 200 }],
      },
    });

    const last = [];
    for await (const chunk of (await client().chat.send({ ...wish, chatRequest: { ...asked, stream: true } })) as AsyncIterable<ChatStreamChunk>)
      last.push(chunk);
    expect(last.at(-1)).toMatchObject({ choices: [], openrouterMetadata: metadata });

    router.upstream.replyWith({ chunks: answers.brokenAnswer });
    const broken = [];
    for await (const chunk of (await client().chat.send({ ...wish, chatRequest: { ...asked, stream: true } })) as AsyncIterable<ChatStreamChunk>)
      broken.push(chunk);
    expect(broken.at(-1)).toMatchObject({ error: { code: 502 }, openrouterMetadata: metadata });

    router.upstream.replyWith(answers.refusal);
    const error = await client()
      .chat.send({ ...wish, chatRequest: { ...asked, stream: false } })
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(TooManyRequestsResponseError);
    expect(error).toMatchObject({ openrouterMetadata: { requested: MODEL, attempt: 1, attempts: [{ status: 429 }] } });
  });
});
