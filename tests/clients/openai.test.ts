import OpenAI, { APIError, AuthenticationError, BadRequestError, RateLimitError } from 'openai';
import { describe, expect, it } from 'vitest';
import { MODEL, useRouter } from './router-under-test.ts';
import * as answers from './upstream-answers.ts';

const router = useRouter();
const client = (apiKey = router.apiKey) => new OpenAI({ baseURL: router.baseUrl, apiKey, maxRetries: 0 });
const asked = { model: MODEL, messages: [{ role: 'user' as const, content: 'How is the weather?' }] };

async function rejection(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => {
      throw new Error('nothing was thrown');
    },
    (error: unknown) => error,
  );
}

describe('the openai client', () => {
  it('reads a whole answer with everything that the upstream said', async () => {
    router.upstream.replyWith({ chunks: answers.richAnswer });
    const completion = await client().chat.completions.create(asked);

    expect(completion).toMatchObject({ object: 'chat.completion', model: MODEL, system_fingerprint: 'fp_1', service_tier: 'default' });
    expect(completion.choices).toEqual([
      {
        index: 0,
        finish_reason: 'stop',
        native_finish_reason: 'stop',
        logprobs: null,
        reasoning_details: answers.DETAILS,
        message: {
          role: 'assistant',
          content: answers.TEXT,
          refusal: null,
          reasoning: answers.REASONING,
          reasoning_details: answers.DETAILS,
          annotations: [answers.SOURCE],
          images: [{ type: 'image_url', image_url: { url: answers.IMAGE } }],
        },
      },
    ]);
    expect(completion.usage).toMatchObject({
      prompt_tokens: 20,
      completion_tokens: 12,
      total_tokens: 32,
      prompt_tokens_details: { cached_tokens: 5, audio_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 4, audio_tokens: 0, accepted_prediction_tokens: 1, rejected_prediction_tokens: 2 },
    });
  });

  it('accumulates the same answer from its stream', async () => {
    router.upstream.replyWith({ chunks: answers.richAnswer });
    const stream = client().chat.completions.stream(asked);
    let reasoning = '';
    stream.on('chunk', ({ choices: [choice] }) => {
      reasoning += choice !== undefined && 'reasoning' in choice.delta ? String(choice.delta.reasoning) : '';
    });
    const completion = await stream.finalChatCompletion();

    expect(completion).toMatchObject({ system_fingerprint: 'fp_1', service_tier: 'default', usage: { total_tokens: 32 } });
    expect(completion.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: answers.TEXT, role: 'assistant' } });
    expect(reasoning).toBe(answers.REASONING);
  });

  it('has tool calls, whole and streamed, also where the upstream ends with stop', async () => {
    router.upstream.replyWith({ chunks: answers.toolAnswer });
    const request = { ...asked, tools: [answers.weatherTool], reasoning_effort: 'low' as const };
    const whole = await client().chat.completions.create(request);
    const streamed = await client().chat.completions.stream(request).finalChatCompletion();

    for (const completion of [whole, streamed]) {
      expect(completion.choices[0]).toMatchObject({ finish_reason: 'tool_calls', message: { content: 'I look.' } });
      expect(completion.choices[0]?.message.tool_calls).toMatchObject([
        { id: 'call_a', type: 'function', function: { name: 'look', arguments: '{"at":"sky"}' } },
        { id: 'call_b', type: 'function', function: { name: 'listen', arguments: '{}' } },
      ]);
    }
    expect(router.upstream.requests.at(-1)).toMatchObject({ tools: [answers.weatherTool], reasoning: { effort: 'low' } });
  });

  it('has a refusal with its log probabilities', async () => {
    router.upstream.replyWith({ chunks: answers.refusedAnswer });
    const whole = await client().chat.completions.create({ ...asked, logprobs: true });
    const streamed = await client()
      .chat.completions.stream({ ...asked, logprobs: true })
      .finalChatCompletion();

    for (const completion of [whole, streamed]) {
      expect(completion.choices[0]).toMatchObject({ finish_reason: 'content_filter', message: { refusal: "I can't." } });
      expect(completion.choices[0]?.logprobs?.refusal?.map((token) => token.token)).toEqual(['I ', "can't."]);
    }
  });

  it('has sound with its transcript', async () => {
    router.upstream.replyWith({ chunks: answers.loudAnswer });
    const completion = await client().chat.completions.create({ ...asked, modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'pcm16' } });

    const audio = { id: 'audio_1', data: Buffer.from('one').toString('base64'), transcript: 'Good day', expires_at: 1_763_800_000 };
    expect(completion.choices[0]?.message).toMatchObject({ content: null, audio });
    expect(router.upstream.requests.at(-1)).toMatchObject({ modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'pcm16' } });
  });

  it('throws the error that its class stands for before the first content', async () => {
    router.upstream.replyWith(answers.refusal);
    const limited = await rejection(client().chat.completions.create(asked));
    const streamed = await rejection(client().chat.completions.create({ ...asked, stream: true }));
    const invalid = await rejection(client().chat.completions.create({ ...asked, temperature: 3 }));
    const unknown = await rejection(client('sk-wrong').chat.completions.create(asked));

    for (const error of [limited, streamed]) {
      expect(error).toBeInstanceOf(RateLimitError);
      expect(error).toMatchObject({ status: 429, code: 429, type: 'rate_limit_exceeded', requestID: expect.any(String) });
    }
    expect(invalid).toBeInstanceOf(BadRequestError);
    expect(invalid).toMatchObject({ param: 'temperature', message: expect.stringContaining('temperature') });
    expect(unknown).toBeInstanceOf(AuthenticationError);
  });

  it('gets what came before an error in the middle, and then the error', async () => {
    for (const reply of [{ chunks: answers.brokenAnswer }, { chunks: answers.brokenAnswer.slice(0, 2), isCut: true }]) {
      router.upstream.replyWith(reply);
      let text = '';
      const reading = async () => {
        for await (const { choices } of await client().chat.completions.create({ ...asked, stream: true })) text += choices[0]?.delta.content ?? '';
      };
      const error = await rejection(reading());
      expect(text).toBe('Half an ');
      expect(error).toBeInstanceOf(APIError);
      expect(error).toMatchObject({ code: 502 });

      const whole = await client().chat.completions.create(asked);
      expect(whole.choices[0]).toMatchObject({ finish_reason: 'error', message: { content: 'Half an ' }, error: { code: 502 } });
    }
  });

  it('lists the models', async () => {
    const ids: string[] = [];
    for await (const { id } of client().models.list()) ids.push(id);
    expect(ids).toEqual([MODEL]);
  });
});
