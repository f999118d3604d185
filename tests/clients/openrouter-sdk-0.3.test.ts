import { OpenRouter } from 'openrouter-sdk-0.3';
import { ChatError } from 'openrouter-sdk-0.3/models/errors';
import { describe, expect, it } from 'vitest';
import { MODEL, useRouter } from './router-under-test.ts';
import * as answers from './upstream-answers.ts';

/** Of the time of the contract. It checks every answer and every chunk with its schemas. */
const router = useRouter();
const client = () => new OpenRouter({ apiKey: router.apiKey, serverURL: router.baseUrl });
const asked = { model: MODEL, messages: [{ role: 'user' as const, content: 'How is the weather?' }] };
const details = [
  expect.objectContaining({ type: 'reasoning.text', text: answers.REASONING, signature: answers.SIGNATURE, index: 0, format: 'anthropic-claude-v1' }),
];

async function chunksOf(fields: object = {}) {
  const chunks = [];
  for await (const chunk of await client().chat.send({ ...asked, ...fields, stream: true })) chunks.push(chunk);
  return chunks;
}

describe('the client of @openrouter/sdk 0.3', () => {
  it('reads a whole answer with reasoning, image, fingerprint and usage', async () => {
    router.upstream.replyWith({ chunks: answers.richAnswer });
    const { choices, systemFingerprint, usage } = await client().chat.send(asked);

    expect(systemFingerprint).toBe('fp_1');
    expect(choices[0]).toMatchObject({ finishReason: 'stop', message: { content: answers.TEXT, reasoning: answers.REASONING, reasoningDetails: details } });
    expect(choices[0]?.message.images).toMatchObject([{ imageUrl: { url: answers.IMAGE } }]);
    expect(usage).toMatchObject({ promptTokens: 20, completionTokens: 12, completionTokensDetails: { reasoningTokens: 4, rejectedPredictionTokens: 2 } });
  });

  it('reads every chunk of a stream', async () => {
    router.upstream.replyWith({ chunks: answers.richAnswer });
    const chunks = await chunksOf();
    const deltas = chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta));

    expect(deltas.map(({ content }) => content ?? '').join('')).toBe(answers.TEXT);
    expect(deltas.map(({ reasoning }) => reasoning ?? '').join('')).toBe(answers.REASONING);
    expect(deltas.flatMap(({ reasoningDetails }) => reasoningDetails ?? []).at(-1)).toMatchObject({ signature: answers.SIGNATURE, index: 0 });
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { totalTokens: 32 } });
  });

  it('has tool calls, whole and streamed', async () => {
    router.upstream.replyWith({ chunks: answers.toolAnswer });
    const whole = await client().chat.send({ ...asked, tools: [answers.weatherTool] });
    const fragments = (await chunksOf({ tools: [answers.weatherTool] })).flatMap(({ choices }) => choices.flatMap(({ delta }) => delta.toolCalls ?? []));

    expect(whole.choices[0]).toMatchObject({ finishReason: 'tool_calls', message: { toolCalls: [{ id: 'call_a' }, { id: 'call_b' }] } });
    const argumentsOf = (at: number) => fragments.map(({ index, function: called }) => (index === at ? (called?.arguments ?? '') : '')).join('');
    expect([argumentsOf(0), argumentsOf(1)]).toEqual(['{"at":"sky"}', '{}']);
  });

  it('sends reasoning back as it came', async () => {
    router.upstream.replyWith({ chunks: answers.richAnswer });
    const { choices } = await client().chat.send(asked);
    const message = choices[0]?.message;
    if (message === undefined) throw new Error('the answer has no message');
    await client().chat.send({ ...asked, messages: [...asked.messages, message, { role: 'user', content: 'And tomorrow?' }] });

    expect(router.upstream.requests.at(-1)).toMatchObject({ messages: [{}, { reasoning: answers.REASONING, reasoning_details: answers.DETAILS }, {}] });
  });

  it('throws its error before the first content', async () => {
    router.upstream.replyWith(answers.refusal);
    for (const work of [client().chat.send(asked), chunksOf()]) {
      const error = await work.catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(ChatError);
      expect(error).toMatchObject({ statusCode: 429, error: { code: 429, type: 'rate_limit_exceeded' } });
    }
  });

  it('reads the error chunk behind the text, and a whole answer that ends with an error', async () => {
    router.upstream.replyWith({ chunks: answers.brokenAnswer });
    const chunks = await chunksOf();
    const whole = await client().chat.send(asked);

    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe('Half an ');
    expect(chunks.at(-1)).toMatchObject({ error: { code: 502 }, choices: [{ finishReason: 'error' }] });
    expect(whole.choices[0]).toMatchObject({ finishReason: 'error', message: { content: 'Half an ' } });
  });
});
