import { readdirSync, readFileSync } from 'node:fs';
import OpenAI from 'openai';
import { describe, expect, it, onTestFinished } from 'vitest';
import { adapterConformance } from '../../services/router-worker/providers/conformance.ts';
import { responses } from '../../services/router-worker/providers/responses/adapter.ts';
import { ResponseReader } from '../../services/router-worker/providers/responses/to-parts.ts';
import { systemClock } from '../../shared/clock.ts';
import type { ChatRequest } from '../../shared/contracts/router/chat-request.ts';
import { openOutbound } from '../../shared/http/outbound.ts';
import { sseReader } from '../../shared/http/sse-reader.ts';
import { addPart, emptyAnswer } from '../../shared/surfaces/answer.ts';
import { openResponsesUpstream, understood } from './responses-upstream.ts';

const MODEL = 'gpt-5';
const TIMEOUTS = { connectMs: 60_000, firstTokenMs: 60_000, idleMs: 60_000 };
const FIXTURES = new URL('../../services/router-worker/providers/responses/__fixtures__/', import.meta.url);

const openAdapter = ({ baseUrl, apiKey }: { baseUrl: string; apiKey: string }) =>
  responses({ slug: 'loopback', name: 'Loopback', connectTimeoutMs: 60_000, clock: systemClock, baseUrl, apiKey, outbound: openOutbound({}) });

adapterConformance('the Responses adapter', {
  openUpstream: openResponsesUpstream,
  openAdapter,
  understood,
  pictureAt: (url) => url,
  model: MODEL,
  returnedReasoning: [{ text: 'let me see', signature: 'c2lnbmVk' }],
  countsCacheWrites: false,
  countsReasoning: true,
});

it('leaves out what a model refuses, and remembers that a model has no encrypted reasoning', async () => {
  const upstream = await openResponsesUpstream();
  const adapter = openAdapter({ baseUrl: upstream.baseUrl, apiKey: 'sk-loopback' });
  onTestFinished(async () => {
    await adapter.close();
    await upstream.close();
  });
  const ask = (fields: Partial<ChatRequest> = {}) => {
    const request: ChatRequest = { messages: [{ role: 'user', content: 'hi' }], ...fields };
    return adapter.stream({ model: MODEL, request, timeouts: TIMEOUTS }, new AbortController().signal, () => true);
  };
  const refusing = (param: string) => ({ refuse: { status: 400, param, code: 'unsupported_parameter', message: `'${param}' is not supported` } });
  upstream.answer(refusing('include'), refusing('temperature'), {});
  await ask({ temperature: 0.5 });
  await ask({ temperature: 0.5 });
  expect(upstream.requests.slice(2).map(({ body }) => body)).toEqual([
    expect.not.objectContaining({ include: expect.anything() }),
    expect.objectContaining({ temperature: 0.5 }),
  ]);
  expect(upstream.requests[3]?.body).not.toHaveProperty('include');
  upstream.answer(refusing('temperature'));
  await expect(ask({ temperature: 0.5, provider: { require_parameters: true } })).rejects.toMatchObject({ code: 'router.provider_refused' });
});

describe('the SDK of OpenAI', () => {
  const params = { model: MODEL, input: 'hi' };

  it.each(readdirSync(FIXTURES))('reads %s as the adapter does', async (name) => {
    const bytes = readFileSync(new URL(name, FIXTURES));
    const sdk = new OpenAI({ apiKey: 'sk', maxRetries: 0, fetch: async () => new Response(bytes, { headers: { 'content-type': 'text/event-stream' } }) });
    const response = await sdk.responses.stream(params).finalResponse();

    const answer = emptyAnswer();
    const sse = sseReader({ maxEventChars: 100_000 });
    for (const part of new ResponseReader().readEvents([...sse.read(bytes), ...sse.end()])) addPart(answer, part);
    expect(bytes.toString().split('\n')[0]).toMatch(/^: Written by hand from the types of npm openai 6\.49\.0/);
    expect(answer.text).toBe(response.output_text);
    expect(answer.toolCalls.map(({ id, function: called }) => ({ id, ...called }))).toEqual(
      response.output.flatMap((item) => (item.type === 'function_call' ? [{ id: item.call_id, name: item.name, arguments: item.arguments }] : [])),
    );
    expect((answer.reasoningPieces ?? []).flatMap((piece) => (piece.type === 'encrypted' ? [piece.data] : []))).toEqual(
      response.output.flatMap((item) => (item.type === 'reasoning' ? [item.encrypted_content] : [])),
    );
    expect(answer.usage).toMatchObject({ promptTokens: response.usage?.input_tokens, completionTokens: response.usage?.output_tokens });
  });

  it('takes the loopback upstream for the API', async () => {
    const upstream = await openResponsesUpstream();
    onTestFinished(() => upstream.close());
    const sdk = new OpenAI({ apiKey: 'sk', baseURL: upstream.baseUrl, maxRetries: 0 });
    const input = [{ role: 'user' as const, content: [{ type: 'input_text' as const, text: 'hi' }] }];
    const asked = { model: MODEL, input, store: false, include: ['reasoning.encrypted_content' as const] };
    upstream.answer({ reasoning: ['hm'], signature: 's', toolCalls: [{ id: 'call_1', name: 'look', arguments: ['{"at":', '1}'] }], pieceBytes: 7 });
    const response = await sdk.responses.stream(asked).finalResponse();

    expect(response.output_text).toBe('Hello there');
    expect(response.output).toMatchObject([
      { type: 'reasoning', encrypted_content: 's' },
      { type: 'message' },
      { type: 'function_call', call_id: 'call_1', arguments: '{"at":1}' },
    ]);
    upstream.answer({ refuse: { status: 429 } });
    await expect(sdk.responses.stream(asked).finalResponse()).rejects.toMatchObject({ status: 429 });
  });
});
