import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { createOpenRouter } from '@openrouter/ai-sdk-provider';
import { APICallError, dynamicTool, generateText, jsonSchema, streamText } from 'ai';
import { describe, expect, it } from 'vitest';
import { MODEL, useRouter } from './router-under-test.ts';
import * as answers from './upstream-answers.ts';

const router = useRouter();
const openRouter = () => createOpenRouter({ baseURL: router.baseUrl, apiKey: router.apiKey, compatibility: 'strict' })(MODEL);
const compatible = () => createOpenAICompatible({ name: 'switchyard', baseURL: router.baseUrl, apiKey: router.apiKey, includeUsage: true })(MODEL);
const providers = [
  ['@openrouter/ai-sdk-provider', openRouter],
  ['@ai-sdk/openai-compatible', compatible],
] as const;
type Model = ReturnType<typeof openRouter> | ReturnType<typeof compatible>;

const parameters = jsonSchema({ type: 'object', properties: { at: { type: 'string' } } });
const lookTool = dynamicTool({ description: 'Looks or listens', inputSchema: parameters, execute: async () => 'nothing' });
const tools = { look: lookTool, listen: lookTool };
const asked = { prompt: 'How is the weather?', maxRetries: 0 };

/** All parts of a stream; its errors are parts, too. */
async function partsOf(model: Model, more: object = {}) {
  const parts = [];
  for await (const part of streamText({ model, ...asked, ...more, onError: () => {} }).fullStream) parts.push(part);
  return parts;
}

describe.each(providers)('ai with %s', (_, modelOf) => {
  it('reads a whole answer', async () => {
    router.upstream.replyWith({ chunks: answers.richAnswer });
    const { text, reasoningText, usage, finishReason } = await generateText({ model: modelOf(), ...asked });

    expect([text, reasoningText, finishReason]).toEqual([answers.TEXT, answers.REASONING, 'stop']);
    expect(usage).toMatchObject({ inputTokens: 20, outputTokens: 12, totalTokens: 32 });
  });

  it('reads a stream', async () => {
    router.upstream.replyWith({ chunks: answers.richAnswer });
    const parts = await partsOf(modelOf());

    expect(parts.map((part) => (part.type === 'text-delta' ? part.text : '')).join('')).toBe(answers.TEXT);
    expect(parts.map((part) => (part.type === 'reasoning-delta' ? part.text : '')).join('')).toBe(answers.REASONING);
    expect(parts.at(-1)).toMatchObject({ type: 'finish', finishReason: 'stop', totalUsage: { inputTokens: 20, outputTokens: 12 } });
  });

  it('has tool calls, whole and streamed', async () => {
    router.upstream.replyWith({ chunks: answers.toolAnswer });
    const whole = await generateText({ model: modelOf(), ...asked, tools });
    const streamed = (await partsOf(modelOf(), { tools })).filter((part) => part.type === 'tool-call');

    for (const calls of [whole.toolCalls, streamed]) {
      expect(calls).toMatchObject([
        { toolCallId: 'call_a', toolName: 'look', input: { at: 'sky' } },
        { toolCallId: 'call_b', toolName: 'listen', input: {} },
      ]);
    }
    expect(whole.finishReason).toBe('tool-calls');
  });

  it('throws an error with its status before the first content', async () => {
    router.upstream.replyWith(answers.refusal);
    const error = await generateText({ model: modelOf(), ...asked }).catch((thrown: unknown) => thrown);
    const [failed] = (await partsOf(modelOf())).filter((part) => part.type === 'error');

    for (const thrown of [error, failed?.error]) {
      expect(APICallError.isInstance(thrown)).toBe(true);
      expect(thrown).toMatchObject({ statusCode: 429, isRetryable: true, message: expect.stringContaining('slow down') });
    }
  });

  it('gets what came before an error in the middle, and then the error', async () => {
    router.upstream.replyWith({ chunks: answers.brokenAnswer });
    const parts = await partsOf(modelOf());

    expect(parts.map((part) => (part.type === 'text-delta' ? part.text : '')).join('')).toBe('Half an ');
    expect(parts.filter((part) => part.type === 'error')).toHaveLength(1);
    expect(parts.at(-1)).toMatchObject({ type: 'finish', finishReason: 'error' });
  });
});

describe('ai with @openrouter/ai-sdk-provider', () => {
  it('has sources, files and signed reasoning, and sends the reasoning back as it came', async () => {
    router.upstream.replyWith({ chunks: answers.richAnswer });
    const first = await generateText({ model: openRouter(), ...asked });
    const parts = await partsOf(openRouter());

    expect(first.sources).toMatchObject([{ sourceType: 'url', url: answers.SOURCE.url_citation.url }]);
    expect(first.files).toMatchObject([{ mediaType: 'image/png' }]);
    expect(parts.filter((part) => part.type === 'source' || part.type === 'file').map(({ type }) => type)).toEqual(['source', 'file']);

    const messages = [{ role: 'user' as const, content: asked.prompt }, ...first.response.messages, { role: 'user' as const, content: 'And tomorrow?' }];
    await generateText({ model: openRouter(), messages, maxRetries: 0 });
    expect(router.upstream.requests.at(-1)).toMatchObject({ messages: [{}, { role: 'assistant', reasoning_details: answers.DETAILS }, {}] });
  });
});
