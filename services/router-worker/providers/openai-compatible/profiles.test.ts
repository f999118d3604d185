import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { ProviderPart } from '#shared/contracts/router/provider-part.ts';
import { openOutbound } from '#shared/http/outbound.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { openAiCompatibleDialect } from './dialect.ts';
import { PROFILES, type ProfileName } from './profiles.ts';

const mark = { cache_control: { type: 'ephemeral' as const } };
const tool = { type: 'function' as const, function: { name: 'look' } };
const toolCalls = [{ id: 'call_1', type: 'function' as const, function: { name: 'look', arguments: '{}' } }];
const details = [{ type: 'reasoning.text', text: 'hm', index: 0, format: 'unknown' }];

const sampling = { top_k: 40, min_p: 0.1, top_a: 0.2, repetition_penalty: 1.1 };
const logprobs = { logprobs: true, top_logprobs: 2 };
/** Taken by all. */
const plain = { temperature: 0.5, top_p: 0.9, stop: ['\n'], parallel_tool_calls: false };
const rich: ChatRequest = {
  ...plain,
  ...sampling,
  ...logprobs,
  messages: [
    { role: 'developer', content: 'be brief' },
    { role: 'user', name: 'ann', content: [{ type: 'text', text: 'hi', ...mark }] },
    { role: 'assistant', content: null, tool_calls: toolCalls, reasoning: 'hm', reasoning_details: details },
    { role: 'tool', tool_call_id: 'call_1', content: 'one' },
  ],
  tools: [{ ...tool, ...mark }],
  max_tokens: 1_000,
  seed: 7,
  user: 'u',
  logit_bias: { 50256: -100 },
  verbosity: 'low',
  service_tier: 'auto',
  reasoning: { effort: 'medium' },
  provider: { order: ['east'] },
  session_id: 's',
};

/** How messages and tools differ. */
interface Spelling {
  before?: object;
  user?: object;
  text?: object;
  tool?: object;
}

const bodyWith = (spelling: Spelling, fields: object) => ({
  ...plain,
  model: 'their model',
  messages: [
    { role: 'system', content: 'be brief' },
    { role: 'user', name: 'ann', content: [{ type: 'text', text: 'hi', ...spelling.text }], ...spelling.user },
    { role: 'assistant', content: null, tool_calls: toolCalls, ...spelling.before },
    { role: 'tool', tool_call_id: 'call_1', content: 'one' },
  ],
  tools: [{ ...tool, ...spelling.tool }],
  stream: true,
  ...fields,
});

const usage = { stream_options: { include_usage: true } };
const ofOpenAi = { user: 'u', logit_bias: { 50256: -100 }, verbosity: 'low', service_tier: 'auto' };
const sentBack = { before: { reasoning_content: 'hm' } };
const bearer = { authorization: 'Bearer sk-1', 'api-key': undefined };
const apiKey = { authorization: undefined, 'api-key': 'sk-1' };
const templates = { chat_template_kwargs: { enable_thinking: true, thinking: true } };
const openAiBody = bodyWith({}, { ...usage, ...ofOpenAi, ...logprobs, seed: 7, max_completion_tokens: 1_000, reasoning_effort: 'medium' });
const everything = { ...usage, ...ofOpenAi, ...logprobs, ...sampling, seed: 7, max_tokens: 1_000 };
const { repetition_penalty: repeatPenalty, ...otherSampling } = sampling;
const { logprobs: _, top_logprobs: __, ...withoutLogprobs } = everything;

interface Expected {
  /** Beside slug, kind, profile, key and address. */
  block?: object;
  url?: string;
  headers: Readonly<Record<string, string | undefined>>;
  body: object;
  fixture: string;
  answer: object;
}

const thought = { reasoning: 'Two words', text: 'Hi', finish: 'stop' };
const counted = (cachedTokens: number, reasoningTokens: number) => ({ promptTokens: 9, completionTokens: 6, cachedTokens, reasoningTokens });

const table: Record<ProfileName, Expected> = {
  generic: {
    headers: bearer,
    body: bodyWith({}, { ...everything, reasoning_effort: 'medium' }),
    fixture: 'openai-tool-calls',
    answer: { calls: ['get_weather', expect.any(String)], finish: 'tool_calls' },
  },
  openai: { headers: bearer, body: openAiBody, fixture: 'openai-text', answer: { text: 'Hello world', finish: 'stop', usage: { completionTokens: 10 } } },
  azure: {
    block: { api_version: 'preview' },
    url: '/base/chat/completions?api-version=preview',
    headers: apiKey,
    body: openAiBody,
    fixture: 'azure-first-chunk',
    answer: { text: 'Yes', finish: 'stop', usage: null },
  },
  'azure-deployments': {
    block: { api_version: '2024-10-21' },
    url: '/base/deployments/their%20model/chat/completions?api-version=2024-10-21',
    headers: apiKey,
    body: openAiBody,
    fixture: 'azure-first-chunk',
    answer: { text: 'Yes', finish: 'stop' },
  },
  openrouter: {
    headers: bearer,
    body: bodyWith({ before: { reasoning: 'hm', reasoning_details: details }, text: mark, tool: mark }, { ...everything, reasoning: { effort: 'medium' } }),
    fixture: 'openrouter-reasoning-details',
    answer: { ...thought, usage: { ...counted(3, 4), cacheWriteTokens: 2 } },
  },
  groq: {
    headers: bearer,
    body: bodyWith(
      { user: { name: undefined } },
      { ...usage, user: 'u', service_tier: 'auto', seed: 7, max_completion_tokens: 1_000, reasoning_effort: 'medium' },
    ),
    fixture: 'groq-usage',
    answer: { text: 'Hi', finish: 'stop', usage: { promptTokens: 7, completionTokens: 2 } },
  },
  together: {
    headers: bearer,
    body: bodyWith({}, { ...withoutLogprobs, reasoning_effort: 'medium' }),
    fixture: 'together-reasoning',
    answer: { ...thought, usage: counted(0, 0) },
  },
  mistral: {
    headers: bearer,
    body: bodyWith({}, { random_seed: 7, max_tokens: 1_000, reasoning_effort: 'high' }),
    fixture: 'mistral-thinking',
    answer: { ...thought, usage: counted(0, 0) },
  },
  deepseek: {
    headers: bearer,
    body: bodyWith(sentBack, { ...everything, thinking: { type: 'enabled' }, reasoning_effort: 'high' }),
    fixture: 'deepseek-reasoning',
    answer: { ...thought, usage: counted(5, 4) },
  },
  xai: {
    headers: bearer,
    body: bodyWith(
      {},
      { ...usage, ...logprobs, user: 'u', verbosity: 'low', service_tier: 'auto', seed: 7, max_completion_tokens: 1_000, reasoning_effort: 'high' },
    ),
    fixture: 'xai-reasoning',
    answer: { ...thought, usage: counted(3, 4) },
  },
  vllm: {
    headers: bearer,
    body: bodyWith(sentBack, { ...everything, ...templates, reasoning_effort: 'medium' }),
    fixture: 'vllm-reasoning',
    answer: { ...thought, usage: counted(0, 0) },
  },
  ollama: {
    headers: bearer,
    body: bodyWith({}, { ...everything, reasoning_effort: 'medium' }),
    fixture: 'ollama-reasoning',
    answer: { ...thought, usage: counted(0, 0) },
  },
  'llama.cpp': {
    headers: bearer,
    body: bodyWith(sentBack, {
      ...usage,
      ...ofOpenAi,
      ...logprobs,
      ...otherSampling,
      ...templates,
      repeat_penalty: repeatPenalty,
      seed: 7,
      max_tokens: 1_000,
      reasoning_effort: 'medium',
    }),
    fixture: 'llama-cpp-timings',
    answer: { ...thought, usage: counted(0, 0) },
  },
};

interface Answer {
  status: number;
  type: string;
  body: Buffer | string;
}

/** An upstream with one answer, and the adapter that a block with the profile gets. */
async function openWith(profile: ProfileName, answer: Answer) {
  const requests: { url: string | undefined; headers: IncomingHttpHeaders; body: unknown }[] = [];
  const server = createServer(async (request, response) => {
    requests.push({ url: request.url, headers: request.headers, body: await json(request) });
    response.writeHead(answer.status, { 'content-type': answer.type }).end(answer.body);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/base`;
  const block = { slug: 'east', kind: 'openai-compatible', profile, base_url: baseUrl, api_key: '${KEY}', ...table[profile].block };
  const adapter = openAiCompatibleDialect.configure(block).open({
    secret: () => 'sk-1',
    connectTimeoutMs: 5_000,
    outbound: openOutbound({}),
    outboundRules: { allowHosts: new Set() },
    cache: null,
    clock: systemClock,
    log: silentLog,
    scriptedWordsPerSecond: 0,
  });
  onTestFinished(async () => {
    await adapter.close();
    server.close();
  });
  const timeouts = { connectMs: 5_000, firstTokenMs: 20_000, idleMs: 20_000 };
  const call = async (request: ChatRequest) => {
    const parts: ProviderPart[] = [];
    await adapter.stream({ model: 'their model', request, timeouts }, new AbortController().signal, (more) => parts.push(...more) > 0);
    return summaryOf(parts);
  };
  return { requests, adapter, call };
}

function summaryOf(parts: readonly ProviderPart[]) {
  const summary = { reasoning: '', text: '', calls: [] as string[], finish: '', usage: null as object | null };
  for (const part of parts) {
    if (part.type === 'text-delta') summary.text += part.text;
    else if (part.type === 'reasoning-delta' && 'text' in part) summary.reasoning += part.text;
    else if (part.type === 'tool-call-start') summary.calls.push(part.name);
    else if (part.type === 'finish') summary.finish = part.reason;
    else if (part.type === 'usage') summary.usage = part.usage;
  }
  return summary;
}

describe.each(Object.keys(PROFILES) as ProfileName[])('the profile %s', (profile) => {
  it('spells a request with everything as its server reads it, and reads its answer', async () => {
    const { fixture, headers, url = '/base/chat/completions', body, answer } = table[profile];
    const bytes = await readFile(new URL(`./__fixtures__/${fixture}.sse`, import.meta.url));
    const { requests, call } = await openWith(profile, { status: 200, type: 'text/event-stream', body: bytes });

    expect(await call(rich)).toMatchObject(answer);
    expect(requests).toEqual([{ url, headers: expect.objectContaining({ 'content-type': 'application/json' }), body: JSON.parse(JSON.stringify(body)) }]);
    for (const [name, value] of Object.entries(headers)) expect(requests[0]?.headers[name]).toBe(value);
  });
});

describe('parameters that a profile leaves out', () => {
  const ok = { status: 200, type: 'text/event-stream', body: '' };
  const messages: ChatRequest['messages'] = [{ role: 'user', content: 'hi' }];

  it('are sent to a provider that must take them all, and those that are its own', async () => {
    const { adapter } = await openWith('mistral', ok);
    const bodyOf = (request: Partial<ChatRequest>) => adapter.upstreamBody({ model: 'm', request: { messages, top_k: 40, ...request } });
    expect(bodyOf({})).not.toHaveProperty('top_k');
    expect(bodyOf({ provider: { require_parameters: true } })).toMatchObject({ top_k: 40 });
    expect(bodyOf({ provider_options: { east: { top_k: 3, safe_prompt: true } } })).toMatchObject({ top_k: 3, safe_prompt: true });
  });

  it.each<[ProfileName, ChatRequest['reasoning'], object]>([
    ['deepseek', { effort: 'none' }, { thinking: { type: 'disabled' } }],
    ['deepseek', { effort: 'xhigh' }, { thinking: { type: 'enabled' }, reasoning_effort: 'max' }],
    ['vllm', { enabled: false }, { chat_template_kwargs: { enable_thinking: false, thinking: false } }],
    ['together', { effort: 'none' }, { reasoning_effort: 'low' }],
    ['groq', { effort: 'max' }, { reasoning_effort: 'high' }],
    ['mistral', { enabled: true }, { reasoning_effort: 'high' }],
    ['ollama', { summary: 'auto' }, {}],
  ])('are none of the reasoning: %s gets of %j', async (profile, reasoning, expected) => {
    const { adapter } = await openWith(profile, ok);
    const { model: _, messages: __, stream: ___, stream_options: ____, ...said } = adapter.upstreamBody({ model: 'm', request: { messages, reasoning } });
    expect(said).toEqual(expected);
  });

  it.each<[ProfileName, object]>([
    ['generic', { response_format: { type: 'grammar', grammar: 'root ::= "a"' } }],
    ['vllm', { structured_outputs: { grammar: 'root ::= "a"' } }],
    ['llama.cpp', { grammar: 'root ::= "a"' }],
  ])('are no grammar: %s gets %j', async (profile, expected) => {
    const { adapter } = await openWith(profile, ok);
    const request = { messages, response_format: { type: 'grammar' as const, grammar: 'root ::= "a"' } };
    const { model: _, messages: __, stream: ___, stream_options: ____, ...said } = adapter.upstreamBody({ model: 'm', request });
    expect(said).toEqual(expected);
  });

  it('leave what the request itself says of the switch', async () => {
    const { adapter } = await openWith('vllm', ok);
    const request = { messages, reasoning: { effort: 'low' as const }, chat_template_kwargs: { enable_thinking: false } };
    expect(adapter.upstreamBody({ model: 'm', request })).toMatchObject({ chat_template_kwargs: { enable_thinking: false }, reasoning_effort: 'low' });
  });
});

describe('an error of', () => {
  const detail = [{ type: 'extra_forbidden', loc: ['body', 'tools'], msg: 'Extra inputs are not permitted' }];

  it.each<[ProfileName, number, object, string, RegExp]>([
    ['xai', 400, { code: 'Client specified an invalid argument', error: "This model's maximum prompt length is 10" }, 'router.context_length', /prompt length/],
    ['llama.cpp', 400, { error: { code: 400, message: 'too long', type: 'exceed_context_size_error' } }, 'router.context_length', /too long/],
    ['together', 422, { error: { message: 'inputs tokens + max_new_tokens must be <= 4097', type: 'x' } }, 'router.context_length', /4097/],
    ['mistral', 422, { object: 'error', message: { detail }, type: 'invalid_request_error' }, 'router.provider_refused', /body\.tools: Extra inputs/],
    ['generic', 422, { detail }, 'router.provider_refused', /body\.tools: Extra inputs/],
    ['generic', 400, { error: { message: 'too long', type: 'exceed_context_size_error' } }, 'router.provider_refused', /too long/],
    ['groq', 429, { error: { message: 'slow down', type: 'tokens', code: 'rate_limit_exceeded' } }, 'router.provider_rate_limited', /slow down/],
    ['azure', 401, { error: { code: '401', message: 'Access denied due to invalid subscription key' } }, 'router.provider_misconfigured', /Access denied/],
  ])('%s with status %i and %j is %s', async (profile, status, body, code, message) => {
    const { call } = await openWith(profile, { status, type: 'application/json', body: JSON.stringify(body) });
    await expect(call({ messages: [{ role: 'user', content: 'hi' }] })).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
  });
});

describe('the profile of a block', () => {
  const configured = (fields: object) => openAiCompatibleDialect.configure({ slug: 'east', kind: 'openai-compatible', ...fields });

  it('gives it an address, where there is one', () => {
    expect(configured({ profile: 'groq' }).address).toEqual({ address: 'api.groq.com', port: 443 });
    expect(configured({ profile: 'ollama' }).address).toEqual({ address: '127.0.0.1', port: 11_434 });
    expect(configured({ profile: 'ollama', base_url: 'http://gpu:1/v1' }).address).toEqual({ address: 'gpu', port: 1 });
  });

  it('gives it a data policy if the block names the profile, and states none itself', () => {
    const unknown = { trains: true, retains: true, isDistillable: false };
    expect(configured({ profile: 'openai' }).dataPolicy).toEqual({ ...unknown, trains: false });
    expect(configured({ base_url: 'https://api.openai.com/v1' }).dataPolicy).toEqual(unknown);
    expect(configured({ profile: 'openrouter' }).dataPolicy).toEqual(unknown);
    expect(configured({ profile: 'vllm', data_policy: { trains: true, retains: false } }).dataPolicy).toEqual({ ...unknown, retains: false });
  });

  it.each<[string, string]>([
    ['https://api.mistral.ai/v1', 'random_seed'],
    ['https://api.openai.com.example/v1', 'seed'],
    ['https://east.openai.azure.com/openai/v1', 'seed'],
  ])('is that of the host of %s', async (baseUrl, name) => {
    const adapter = configured({ base_url: baseUrl }).open({
      secret: () => '',
      connectTimeoutMs: 60_000,
      outbound: openOutbound({}),
      outboundRules: { allowHosts: new Set() },
      cache: null,
      clock: systemClock,
      log: silentLog,
      scriptedWordsPerSecond: 0,
    });
    onTestFinished(() => adapter.close());
    const body = adapter.upstreamBody({ model: 'm', request: { messages: [], seed: 7, max_tokens: 5 } });
    expect(body).toMatchObject({ [name]: 7, max_tokens: 5 });
  });
});
