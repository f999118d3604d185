import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import OpenAI from 'openai';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { freeFolder } from '../helpers/free-folder.ts';
import { type Standalone, startStandalone } from '../helpers/start-standalone.ts';
import { openAnthropicUpstream, understood as readByAnthropic } from '../upstreams/anthropic-upstream.ts';
import { openBedrockUpstream, understood as readByAmazon } from '../upstreams/bedrock-upstream.ts';
import { openGeminiUpstream, understood as readByGoogle } from '../upstreams/gemini-upstream.ts';
import type { RecordingUpstream } from '../upstreams/loopback-upstream.ts';
import { openResponsesUpstream, understood as readByOpenAi } from '../upstreams/responses-upstream.ts';

const SECRET = 'vendor-secret-0123456789';
const TOOL = { type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } };
const MODELS = { anthropic: 'claude-opus-4-6', gemini: 'gemini-3-flash', bedrock: 'eu.anthropic.claude-opus-4-6-v1', responses: 'gpt-5' } as const;
const KINDS = ['anthropic', 'gemini', 'bedrock', 'responses'] as const;
type Kind = (typeof KINDS)[number];

const read = { anthropic: readByAnthropic, gemini: readByGoogle, bedrock: readByAmazon, responses: readByOpenAi };
let upstreams: Record<Kind, RecordingUpstream>;
let standalone: Standalone;

beforeAll(async () => {
  upstreams = {
    anthropic: await openAnthropicUpstream(),
    gemini: await openGeminiUpstream(),
    bedrock: await openBedrockUpstream(),
    responses: await openResponsesUpstream(),
  };
  const path = join(await freeFolder('vendors'), 'router.json');
  const config = {
    providers: [
      ...KINDS.map((kind) => ({ slug: kind, kind, base_url: upstreams[kind].baseUrl, api_key: '${VENDOR_KEY}' })),
      { slug: 'demo', kind: 'scripted' },
    ],
    models: [
      ...KINDS.map((kind) => ({ id: `${kind}/model`, endpoints: [{ provider: kind, upstream_model: MODELS[kind], max_completion_tokens: 8_000 }] })),
      // The sample agent's: it calls its model by itself, to evaluate its documents.
      { id: 'switchyard/assistant', endpoints: [{ provider: 'demo', upstream_model: 'demo' }] },
    ],
    keys: [{ id: 'caller', key: '${ROUTER_API_KEY}' }],
  };
  await writeFile(path, JSON.stringify(config));
  standalone = await startStandalone({ env: { ROUTER_CONFIG: path, VENDOR_KEY: SECRET, LOG_LEVEL: 'trace' } });
});

afterAll(async () => {
  await standalone.stop();
  for (const kind of KINDS) await upstreams[kind].close();
});

afterEach(() => {
  expect(standalone.output()).not.toContain(SECRET);
});

interface Message {
  content: string | null;
  reasoning_details?: unknown[];
  tool_calls?: { id: string; type: string; function: { name: string; arguments: string } }[];
}

async function complete(body: object): Promise<Response> {
  const headers = { authorization: `Bearer ${standalone.keys.routerKey}`, 'content-type': 'application/json' };
  return fetch(`${standalone.routerUrl}/api/v1/chat/completions`, { method: 'POST', headers, body: JSON.stringify(body) });
}

describe.each(KINDS)('a provider of the kind %s', (kind) => {
  const hello = { role: 'user', content: 'hi' };
  const asked = { model: `${kind}/model`, tools: [TOOL], reasoning: { effort: 'high' } };
  const reasoned = {
    reasoning: ['let me ', 'see'],
    signature: 'c2lnbmVk',
    text: [],
    toolCalls: [{ id: 'call_a', name: 'look', arguments: ['{"at":', '1}'] }],
    finish: 'tool_calls' as const,
  };

  it('answers with its reasoning, and gets it back with the results', async () => {
    upstreams[kind].answer(reasoned, {});
    const first = (await (await complete({ ...asked, messages: [hello] })).json()) as { choices: { message: Message; finish_reason: string }[]; usage: object };
    const message = first.choices[0]?.message;

    expect(first).toMatchObject({ choices: [{ finish_reason: 'tool_calls' }], usage: { prompt_tokens: 12, completion_tokens: 5, total_tokens: 17 } });
    expect(message).toMatchObject({ reasoning: 'let me see', tool_calls: [{ id: 'call_a', function: { name: 'look', arguments: '{"at":1}' } }] });

    const result = { role: 'tool', tool_call_id: 'call_a', content: 'found' };
    const second = await complete({ ...asked, messages: [hello, { role: 'assistant', ...message }, result] });
    expect(await second.json()).toMatchObject({ choices: [{ message: { content: 'Hello there' } }] });
    const [, assistant, user] = read[kind](upstreams[kind].requests.at(-1)?.body).turns;
    expect(assistant?.reasoning.map(({ signature }) => signature)).toEqual(['c2lnbmVk']);
    expect(user?.results).toEqual([{ id: 'call_a', text: 'found' }]);
  });

  it('streams, and echoes what was sent without its key', async () => {
    upstreams[kind].answer(reasoned);
    const stream = await (await complete({ ...asked, stream: true, debug: { echo_upstream_body: true }, messages: [hello] })).text();
    const chunks = stream.split('\n').flatMap((line) => (line.startsWith('data: {') ? [JSON.parse(line.slice(6))] : []));

    expect(chunks[0].debug.echo_upstream_body).toEqual(upstreams[kind].requests.at(-1)?.body);
    expect(stream).not.toContain(SECRET);
    expect(chunks.map((chunk) => chunk.choices[0]?.delta?.reasoning ?? '').join('')).toBe('let me see');
    expect(stream).toContain('c2lnbmVk');
    expect(stream.trimEnd().endsWith('data: [DONE]')).toBe(true);
  });

  it('is read by the client of OpenAI, whole and as a stream', async () => {
    upstreams[kind].answer({ text: ['Grüße ', 'aus 日本'] });
    const client = new OpenAI({ apiKey: standalone.keys.routerKey, baseURL: `${standalone.routerUrl}/api/v1`, maxRetries: 0 });
    const body = { model: `${kind}/model`, messages: [{ role: 'user' as const, content: 'hi' }] };
    const whole = await client.chat.completions.create(body);
    const streamed = await client.chat.completions.stream(body).finalChatCompletion();

    for (const { choices } of [whole, streamed]) expect(choices).toMatchObject([{ message: { content: 'Grüße aus 日本' }, finish_reason: 'stop' }]);
    expect(whole.usage).toMatchObject({ prompt_tokens: 12, completion_tokens: 5 });
  });

  it('fails with the words of the vendor, and without its key', async () => {
    upstreams[kind].answer({ refuse: { status: 400, message: `no such thing ${SECRET}` } });
    const response = await complete({ ...asked, messages: [hello] });
    const text = await response.text();

    expect(response.status).toBe(400);
    expect(text).toContain('no such thing [redacted]');
    expect(text).not.toContain(SECRET);
  });
});
