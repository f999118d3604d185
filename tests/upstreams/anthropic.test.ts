import { readdirSync, readFileSync } from 'node:fs';
import Anthropic from '@anthropic-ai/sdk';
import { describe, expect, it, onTestFinished } from 'vitest';
import { anthropic } from '../../services/router-worker/providers/anthropic/adapter.ts';
import { MessageReader } from '../../services/router-worker/providers/anthropic/to-parts.ts';
import { adapterConformance } from '../../services/router-worker/providers/conformance.ts';
import { systemClock } from '../../shared/clock.ts';
import type { ChatRequest } from '../../shared/contracts/router/chat-request.ts';
import { openOutbound } from '../../shared/http/outbound.ts';
import { sseReader } from '../../shared/http/sse-reader.ts';
import { addPart, emptyAnswer } from '../../shared/surfaces/answer.ts';
import { openAnthropicUpstream, understood } from './anthropic-upstream.ts';

const MODEL = 'claude-haiku-4-5';
const TIMEOUTS = { connectMs: 60_000, firstTokenMs: 60_000, idleMs: 60_000 };
const FIXTURES = new URL('../../services/router-worker/providers/anthropic/__fixtures__/', import.meta.url);

const loopback = { slug: 'loopback', name: 'Loopback', connectTimeoutMs: 60_000, clock: systemClock, streamsArgumentsEagerly: false } as const;
const openAdapter = ({ baseUrl, apiKey, auth = 'x-api-key', beta = [] }: { baseUrl: string; apiKey: string; auth?: 'x-api-key' | 'bearer'; beta?: string[] }) =>
  anthropic({ ...loopback, baseUrl, apiKey, auth, beta, outbound: openOutbound({}) });

adapterConformance('the Anthropic adapter', {
  openUpstream: openAnthropicUpstream,
  openAdapter,
  understood,
  pictureAt: (url) => url,
  model: MODEL,
  returnedReasoning: [
    { text: 'let me see', signature: 'c2lnbmVk' },
    { text: null, signature: 'c2VjcmV0' },
  ],
  countsCacheWrites: true,
  countsReasoning: true,
});

async function open(options: { auth?: 'x-api-key' | 'bearer'; beta?: string[] } = {}) {
  const upstream = await openAnthropicUpstream();
  const adapter = openAdapter({ baseUrl: upstream.baseUrl, apiKey: 'sk-ant-loopback-0123', ...options });
  onTestFinished(async () => {
    await adapter.close();
    await upstream.close();
  });
  const ask = async (fields: Partial<ChatRequest> = {}, model = MODEL) => {
    const request: ChatRequest = { messages: [{ role: 'user', content: 'hi' }], ...fields };
    const answer = emptyAnswer();
    await adapter.stream({ model, request, timeouts: TIMEOUTS }, new AbortController().signal, (parts) => {
      for (const part of parts) addPart(answer, part);
      return true;
    });
    return answer;
  };
  return { upstream, ask };
}

describe('requests to Anthropic', () => {
  it('carry the credential and the version in headers', async () => {
    const { upstream, ask } = await open({ beta: ['context-1m-2025-08-07', 'files-api-2025-04-14'] });
    await ask();
    expect(upstream.requests[0]?.path).toBe('/v1/messages');
    expect(upstream.requests[0]?.headers).toMatchObject({
      'x-api-key': 'sk-ant-loopback-0123',
      'anthropic-version': '2023-06-01',
      'anthropic-beta': 'context-1m-2025-08-07,files-api-2025-04-14',
    });
    expect(upstream.requests[0]?.headers).not.toHaveProperty('authorization');
  });

  it('carry a token as a bearer', async () => {
    const { upstream, ask } = await open({ auth: 'bearer' });
    await ask();
    expect(upstream.requests[0]?.headers).toMatchObject({ authorization: 'Bearer sk-ant-loopback-0123' });
    expect(upstream.requests[0]?.headers).not.toHaveProperty('x-api-key');
    expect(upstream.requests[0]?.headers).not.toHaveProperty('anthropic-beta');
  });

  it('are repeated as a refusal demands, and sent like that from then on', async () => {
    const { upstream, ask } = await open();
    upstream.answer({ refuse: { status: 400, message: '`temperature` is deprecated for this model.' } }, {});
    await ask({ temperature: 0.5 });
    await ask({ temperature: 0.7 });
    expect(upstream.requests.map(({ body }) => body)).toEqual([
      expect.objectContaining({ temperature: 0.5 }),
      expect.not.objectContaining({ temperature: expect.anything() }),
      expect.not.objectContaining({ temperature: expect.anything() }),
    ]);
  });

  it('are adapted twice where a model differs twice', async () => {
    const { upstream, ask } = await open();
    const refusing = (message: string) => ({ refuse: { status: 400, message } });
    upstream.answer(refusing('"thinking.type.enabled" is not supported for this model.'), refusing('output_config.effort: xhigh is not supported'), {});
    await expect(ask({ reasoning: { effort: 'high' } })).rejects.toMatchObject({ code: 'router.provider_refused' });
    upstream.answer(refusing('"thinking.type.enabled" is not supported for this model.'), refusing('`top_p` may not be set for this model'), {});
    await ask({ reasoning: { effort: 'high' }, top_p: 0.99 });
    expect(upstream.requests.at(-1)?.body).toMatchObject({ thinking: { type: 'adaptive' }, output_config: { effort: 'high' } });
    expect(upstream.requests.at(-1)?.body).not.toHaveProperty('top_p');
  });

  it('are not adapted when the caller requires its parameters', async () => {
    const { upstream, ask } = await open();
    upstream.answer({ refuse: { status: 400, message: '`temperature` is deprecated for this model.' } });
    await expect(ask({ temperature: 0.5, provider: { require_parameters: true } })).rejects.toMatchObject({ code: 'router.provider_refused' });
    expect(upstream.requests).toHaveLength(1);
  });
});

it.each([
  [400, 'invalid_request_error', 'no', 'router.provider_refused'],
  [400, 'invalid_request_error', 'Your credit balance is too low to access the Anthropic API.', 'router.provider_misconfigured'],
  [400, 'invalid_request_error', 'prompt is too long: 210000 tokens > 200000 maximum', 'router.context_length'],
  [401, 'authentication_error', 'invalid x-api-key', 'router.provider_misconfigured'],
  [402, 'billing_error', 'no', 'router.provider_misconfigured'],
  [403, 'permission_error', 'no', 'router.provider_misconfigured'],
  [404, 'not_found_error', 'model: claude-none', 'router.provider_misconfigured'],
  [413, 'request_too_large', 'no', 'request.too_large'],
  [429, 'rate_limit_error', 'no', 'router.provider_rate_limited'],
  [500, 'api_error', 'no', 'router.provider_unavailable'],
  [504, 'timeout_error', 'no', 'router.provider_unavailable'],
  [529, 'overloaded_error', 'Overloaded', 'router.provider_overloaded'],
] as const)('maps a %i %s (%s)', async (status, type, message, code) => {
  const { upstream, ask } = await open();
  upstream.answer({ refuse: { status, message } });
  await expect(ask()).rejects.toMatchObject({ code, details: { raw: { type, message } } });
});

describe('the SDK of Anthropic', () => {
  const sdk = (fetch: typeof globalThis.fetch) => new Anthropic({ apiKey: 'sk-ant-fixture', maxRetries: 0, fetch });
  const params = { model: MODEL, max_tokens: 100, messages: [{ role: 'user' as const, content: 'hi' }] };
  const names = readdirSync(FIXTURES).filter((name) => name !== 'overloaded.sse');

  it.each(names)('reads %s as the adapter does', async (name) => {
    const bytes = readFileSync(new URL(name, FIXTURES));
    const message = await sdk(async () => new Response(bytes, { headers: { 'content-type': 'text/event-stream' } }))
      .messages.stream(params)
      .finalMessage();

    const answer = emptyAnswer();
    const sse = sseReader({ maxEventChars: 100_000 });
    for (const part of new MessageReader(null).readEvents([...sse.read(bytes), ...sse.end()])) addPart(answer, part);
    expect(bytes.toString().split('\n')[0]).toMatch(/^: Written by hand from the types of npm @anthropic-ai\/sdk 1\.12\.0/);
    expect(answer.text).toBe(message.content.map((block) => (block.type === 'text' ? block.text : '')).join(''));
    expect(answer.toolCalls.map(({ id, function: { name: called, arguments: given } }) => ({ id, name: called, input: JSON.parse(given) }))).toEqual(
      message.content.flatMap((block) => (block.type === 'tool_use' ? [{ id: block.id, name: block.name, input: block.input }] : [])),
    );
    expect(answer.reasoningPieces ?? []).toMatchObject(
      message.content.flatMap((block): object[] => {
        if (block.type === 'thinking') return [{ text: block.thinking, signature: block.signature }];
        return block.type === 'redacted_thinking' ? [{ data: block.data }] : [];
      }),
    );
    expect(answer.nativeReason).toBe(message.stop_reason);
    const { input_tokens: input, output_tokens: output, cache_creation_input_tokens: written, cache_read_input_tokens: read } = message.usage;
    expect(answer.usage).toMatchObject({ promptTokens: input + (written ?? 0) + (read ?? 0), completionTokens: output, cachedTokens: read });
  });

  it('reads the error of a broken answer', async () => {
    const bytes = readFileSync(new URL('overloaded.sse', FIXTURES));
    const client = sdk(async () => new Response(bytes, { headers: { 'content-type': 'text/event-stream' } }));
    await expect(client.messages.stream(params).finalMessage()).rejects.toMatchObject({ type: 'overloaded_error' });
  });

  it('takes the loopback upstream for the API', async () => {
    const upstream = await openAnthropicUpstream();
    onTestFinished(() => upstream.close());
    const client = new Anthropic({ apiKey: 'sk-ant-loopback', baseURL: upstream.baseUrl, maxRetries: 0 });
    const toolCalls = [{ id: 'toolu_1', name: 'look', arguments: ['{"at":', '1}'] }];
    upstream.answer({ reasoning: ['hm'], signature: 's', encrypted: 'e', text: ['Hello ', 'there'], toolCalls, finish: 'tool_calls', pieceBytes: 7 });
    const messages = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'hi' }] }];

    const message = await client.messages.stream({ ...params, messages }).finalMessage();

    expect(message.content).toMatchObject([
      { type: 'thinking', thinking: 'hm', signature: 's' },
      { type: 'redacted_thinking', data: 'e' },
      { type: 'text', text: 'Hello there' },
      { type: 'tool_use', id: 'toolu_1', name: 'look', input: { at: 1 } },
    ]);
    expect(message).toMatchObject({ stop_reason: 'tool_use', usage: { input_tokens: 5, output_tokens: 5, cache_read_input_tokens: 3 } });
    upstream.answer({ refuse: { status: 429 } });
    await expect(client.messages.stream({ ...params, messages }).finalMessage()).rejects.toMatchObject({ status: 429, type: 'rate_limit_error' });
    upstream.answer({ fault: 'error-event', errorCode: 503, after: 1 });
    await expect(client.messages.stream({ ...params, messages }).finalMessage()).rejects.toMatchObject({ type: 'overloaded_error' });
  });
});
