import { readdirSync, readFileSync } from 'node:fs';
import OpenAI from 'openai';
import { expect, it, onTestFinished } from 'vitest';
import { adapterConformance } from '../../services/router-worker/providers/conformance.ts';
import { openAiCompatible } from '../../services/router-worker/providers/openai-compatible/adapter.ts';
import { PROFILES, type Profile } from '../../services/router-worker/providers/openai-compatible/profiles.ts';
import { PartReader } from '../../services/router-worker/providers/openai-compatible/to-parts.ts';
import { systemClock } from '../../shared/clock.ts';
import type { ChatRequest } from '../../shared/contracts/router/chat-request.ts';
import { openOutbound } from '../../shared/http/outbound.ts';
import { sseReader } from '../../shared/http/sse-reader.ts';
import { addPart, emptyAnswer } from '../../shared/surfaces/answer.ts';
import { openOpenAiUpstream, understood } from './openai-upstream.ts';

const loopback = { slug: 'loopback', name: 'Loopback', connectTimeoutMs: 60_000, profile: PROFILES.generic, clock: systemClock } as const;
const openAdapter = (options: { baseUrl: string; apiKey: string; profile?: Profile }) =>
  openAiCompatible({ ...loopback, ...options, outbound: openOutbound({}) });

const FIXTURES = new URL('../../services/router-worker/providers/openai-compatible/__fixtures__/', import.meta.url);

adapterConformance('the OpenAI-compatible adapter', {
  openUpstream: openOpenAiUpstream,
  openAdapter,
  understood,
  pictureAt: (url) => url,
  model: 'loopback-model',
  returnedReasoning: [],
  countsCacheWrites: false,
  countsReasoning: true,
});

const PICKY = {
  status: 400,
  code: 'unsupported_parameter',
  param: 'max_tokens',
  message: "Use 'max_completion_tokens' instead: 'max_tokens' is not supported.",
};

async function openPicky(profile: Profile = PROFILES.generic) {
  const upstream = await openOpenAiUpstream();
  const adapter = openAdapter({ baseUrl: upstream.baseUrl, apiKey: 'sk-loopback-0123456789', profile });
  onTestFinished(async () => {
    await adapter.close();
    await upstream.close();
  });
  const answerTo = async (fields: Partial<ChatRequest>, idleMs = 20_000) => {
    const request: ChatRequest = { messages: [{ role: 'user', content: 'hi' }], max_tokens: 5, ...fields };
    const call = { model: 'picky', request, timeouts: { connectMs: 60_000, firstTokenMs: 60_000, idleMs } };
    const answer = emptyAnswer();
    await adapter.stream(call, new AbortController().signal, (parts) => {
      for (const part of parts) addPart(answer, part);
      return true;
    });
    return answer;
  };
  return { upstream, answerTo, ask: async (fields: Partial<ChatRequest> = {}, idleMs = 20_000) => (await answerTo(fields, idleMs)).text };
}

it('repeats the request without a parameter that the model refuses, and stores that for the next call', async () => {
  const { upstream, ask } = await openPicky();
  upstream.answer({ refuse: PICKY }, {});
  expect([await ask(), await ask()]).toEqual(['Hello there', 'Hello there']);
  expect(upstream.requests.map(({ body }) => body)).toEqual([
    expect.objectContaining({ max_tokens: 5 }),
    expect.objectContaining({ max_completion_tokens: 5 }),
    expect.objectContaining({ max_completion_tokens: 5 }),
  ]);
});

it.each(['web_search_options', 'service_tier'] as const)('states that the upstream did not get %s once it has refused it', async (param) => {
  const { upstream, answerTo } = await openPicky();
  const priced: Partial<ChatRequest> = { web_search_options: {}, service_tier: 'priority' };
  upstream.answer({ refuse: { ...PICKY, param, message: `'${param}' is not supported` } }, {});
  expect(await answerTo(priced)).toMatchObject({ omittedFields: [param], text: 'Hello there' });
  upstream.answer({});
  expect(await answerTo(priced)).toMatchObject({ omittedFields: null });
});

it('states which of the fields that a price depends on its profile leaves out, unless the options of the provider have them', async () => {
  const { upstream, answerTo } = await openPicky(PROFILES.mistral);
  const priced: Partial<ChatRequest> = { web_search_options: {}, service_tier: 'priority' };
  expect((await answerTo(priced)).omittedFields).toEqual(['service_tier', 'web_search_options']);
  expect((await answerTo({ ...priced, provider_options: { loopback: { service_tier: 'priority' } } })).omittedFields).toEqual(['web_search_options']);
  expect(upstream.requests.map(({ body }) => Object.hasOwn(body as object, 'service_tier'))).toEqual([false, true]);
});

it('returns the refusal when the caller requires its parameters', async () => {
  const { upstream, ask } = await openPicky();
  upstream.answer({ refuse: PICKY });
  await expect(ask({ provider: { require_parameters: true } })).rejects.toMatchObject({ code: 'router.provider_refused' });
  expect(upstream.requests).toHaveLength(1);
});

it('gives up on a model that refuses one parameter after the other', async () => {
  const { upstream, ask } = await openPicky();
  const refusing = (param: string) => ({ refuse: { ...PICKY, param, message: `'${param}' is not supported` } });
  upstream.answer(refusing('seed'), refusing('top_p'), refusing('temperature'), refusing('stop'), {});
  await expect(ask({ seed: 1, top_p: 0.5, temperature: 1, stop: 'x' })).rejects.toMatchObject({ code: 'router.provider_refused' });
  expect(upstream.requests).toHaveLength(4);
});

it('does not apply the refusal of one caller’s parameter value to the next caller', async () => {
  const { upstream, ask } = await openPicky();
  upstream.answer({ refuse: { ...PICKY, param: 'temperature', message: "'temperature' is not supported with this model" } }, {});
  await ask({ temperature: 0.3 });
  await ask({ temperature: 1 });
  expect(upstream.requests.map(({ body }) => body)).toEqual([
    expect.objectContaining({ temperature: 0.3 }),
    expect.not.objectContaining({ temperature: expect.anything() }),
    expect.objectContaining({ temperature: 1 }),
  ]);
});

it('never drops a parameter that would change the meaning of the request', async () => {
  const { upstream, ask } = await openPicky();
  upstream.answer({ refuse: { ...PICKY, param: 'tool_choice', message: "'tool_choice' is not supported with this model" } });
  await expect(ask({ tool_choice: 'none' })).rejects.toMatchObject({ code: 'router.provider_refused' });
  expect(upstream.requests).toHaveLength(1);
});

it('does not wait for the idle timeout when a server has finished and leaves the connection open without an end mark', async () => {
  const { upstream, ask } = await openPicky();
  upstream.answer({ hasNoEndMarker: true, staysOpen: true });
  // Longer than the test may take.
  expect(await ask({}, 600_000)).toBe('Hello there');
});

it.each(readdirSync(FIXTURES))('reads %s as the SDK of OpenAI does', async (name) => {
  const bytes = readFileSync(new URL(name, FIXTURES));
  expect(bytes.toString().split('\n')[0]).toMatch(/^: Written by hand (from|after) /);
  const sdk = new OpenAI({ apiKey: 'sk', maxRetries: 0, fetch: async () => new Response(bytes, { headers: { 'content-type': 'text/event-stream' } }) });
  let text = '';
  let promptTokens = 0;
  for await (const { choices, usage } of await sdk.chat.completions.create({ model: 'm', messages: [], stream: true })) {
    text += textOf(choices[0]?.delta.content);
    promptTokens = usage?.prompt_tokens ?? promptTokens;
  }

  const answer = emptyAnswer();
  const sse = sseReader({ maxEventChars: 100_000 });
  for (const part of new PartReader().readEvents([...sse.read(bytes), ...sse.end()])) addPart(answer, part);
  expect(answer.text).toBe(text);
  if (promptTokens > 0) expect(answer.usage?.promptTokens).toBe(promptTokens);
});

/** Some vendors have a list of pieces, which the SDK passes on. */
function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  return Array.isArray(content) ? content.map((piece: { text?: string }) => piece.text ?? '').join('') : '';
}
