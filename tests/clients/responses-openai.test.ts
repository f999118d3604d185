import OpenAI, { APIError, AuthenticationError, BadRequestError, RateLimitError } from 'openai';
import type { Response, ResponseStreamEvent } from 'openai/resources/responses/responses';
import { describe, expect, it } from 'vitest';
import { lengthRows } from './length-errors.ts';
import { MODEL, useRouter } from './router-under-test.ts';
import * as answers from './upstream-answers.ts';

const router = useRouter();
const clientAt = (baseURL: string, apiKey = router.apiKey) => new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const client = () => clientAt(router.baseUrl);
const asked = { model: MODEL, input: 'How is the weather?' };
const look = { type: 'function' as const, name: 'look', parameters: answers.weatherTool.function.parameters, strict: false };

/** The stream as the client's accumulator has it, which throws on an event that does not fit; every event, and the last response. */
async function streamed(fields: object = {}): Promise<{ events: ResponseStreamEvent[]; final: Response }> {
  const stream = client().responses.stream({ ...asked, ...fields });
  const events: ResponseStreamEvent[] = [];
  for await (const event of stream) events.push(event);
  return { events, final: await stream.finalResponse() };
}

async function rejection(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => {
      throw new Error('nothing was thrown');
    },
    (error: unknown) => error,
  );
}

describe('the openai client', () => {
  it('reads a whole response with everything that the upstream said', async () => {
    router.upstream.replyWith({ chunks: answers.richAnswer });
    const response = await client().responses.create({ ...asked, instructions: 'Be brief.', metadata: { a: 'b' }, max_output_tokens: 50 });

    expect(response).toMatchObject({
      ...{ object: 'response', status: 'completed', model: MODEL, output_text: answers.TEXT, service_tier: 'default', error: null, store: false },
      ...{ instructions: 'Be brief.', metadata: { a: 'b' }, max_output_tokens: 50, id: expect.stringMatching(/^gen-/) },
      usage: {
        ...{ input_tokens: 20, output_tokens: 12, total_tokens: 32 },
        ...{ input_tokens_details: { cached_tokens: 5 }, output_tokens_details: { reasoning_tokens: 4 } },
      },
    });
    const { url_citation: cited } = answers.SOURCE;
    expect(response.output).toMatchObject([
      { type: 'reasoning', content: [{ type: 'reasoning_text', text: answers.REASONING }], signature: answers.SIGNATURE, format: 'anthropic-claude-v1' },
      { type: 'message', content: [{ type: 'output_text', text: answers.TEXT, annotations: [{ type: 'url_citation', ...cited }] }] },
      { type: 'image_generation_call', result: answers.IMAGE.split(',')[1], status: 'completed' },
    ]);
    expect(router.upstream.requests.at(-1)).toMatchObject({
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: asked.input },
      ],
    });
  });

  it('accumulates the same response from its stream', async () => {
    router.upstream.replyWith({ chunks: answers.richAnswer });
    const whole = await client().responses.create(asked);
    const { events, final } = await streamed();

    expect(events[0]?.type).toBe('response.created');
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index));
    const deltas = events.flatMap((event) => (event.type === 'response.output_text.delta' ? [event.delta] : []));
    expect(deltas.join('')).toBe(answers.TEXT);
    expect(final).toMatchObject({ status: 'completed', output_text: answers.TEXT });
    const withoutIds = ({ output, usage }: Response) => ({ usage, output: output.map(({ id: _, ...item }) => item).sort(byType) });
    // The client adds `parsed` to texts.
    expect(withoutIds(final)).toMatchObject(withoutIds(whole));
  });

  it('has tool calls, whole and streamed, and sends them back with their outputs', async () => {
    router.upstream.replyWith({ chunks: answers.toolAnswer });
    const request = { tools: [look], tool_choice: 'required' as const, parallel_tool_calls: true };
    const whole = await client().responses.create({ ...asked, ...request });
    const { final } = await streamed(request);
    for (const response of [whole, final]) {
      expect(response.output).toMatchObject([
        { type: 'message', content: [{ text: 'I look.' }] },
        { type: 'function_call', call_id: 'call_a', name: 'look', arguments: '{"at":"sky"}', status: 'completed' },
        { type: 'function_call', call_id: 'call_b', name: 'listen', arguments: '{}', status: 'completed' },
      ]);
    }
    expect(router.upstream.requests.at(-1)).toMatchObject({ tool_choice: 'required', tools: [{ type: 'function', function: { name: 'look' } }] });

    router.upstream.replyWith({ chunks: answers.richAnswer });
    const outputs = whole.output.flatMap((item) =>
      item.type === 'function_call' ? [{ type: 'function_call_output' as const, call_id: item.call_id, output: 'x' }] : [],
    );
    await client().responses.create({ ...asked, input: [{ role: 'user', content: asked.input }, ...whole.output, ...outputs] as never });
    expect(router.upstream.requests.at(-1)).toMatchObject({
      messages: [
        { role: 'user' },
        { role: 'assistant', content: 'I look.', tool_calls: [{ id: 'call_a', function: { name: 'look' } }, { id: 'call_b' }] },
        { role: 'tool', tool_call_id: 'call_a', content: 'x' },
        { role: 'tool', tool_call_id: 'call_b', content: 'x' },
      ],
    });
  });

  it('sends reasoning back as it came', async () => {
    router.upstream.replyWith({ chunks: answers.richAnswer });
    const { output } = await client().responses.create(asked);
    const input = [{ role: 'user', content: asked.input }, ...output, { role: 'user', content: 'And tomorrow?' }];
    await client().responses.create({ ...asked, input: input as never });
    expect(router.upstream.requests.at(-1)).toMatchObject({ messages: [{}, { content: answers.TEXT, reasoning_details: answers.DETAILS }, {}] });
  });

  it('has a refusal, whole and streamed', async () => {
    router.upstream.replyWith({ chunks: answers.refusedAnswer });
    const { events, final } = await streamed();
    for (const response of [await client().responses.create(asked), final]) {
      expect(response).toMatchObject({
        ...{ status: 'incomplete', incomplete_details: { reason: 'content_filter' } },
        output: [{ type: 'message', content: [{ type: 'refusal', refusal: "I can't." }] }],
      });
    }
    expect(events.at(-1)?.type).toBe('response.incomplete');
  });

  it('parses structured output', async () => {
    router.upstream.replyWith({ chunks: answers.toolAnswer });
    const format = { type: 'json_schema' as const, name: 'weather', schema: { type: 'object' }, strict: true };
    await client().responses.create({ ...asked, text: { format }, reasoning: { effort: 'low' } });
    expect(router.upstream.requests.at(-1)).toMatchObject({
      ...{ reasoning: { effort: 'low' } },
      response_format: { type: 'json_schema', json_schema: { name: 'weather', schema: { type: 'object' }, strict: true } },
    });
  });

  it('throws the error that its class stands for before the first content', async () => {
    router.upstream.replyWith(answers.refusal);
    for (const error of [await rejection(client().responses.create(asked)), await rejection(client().responses.create({ ...asked, stream: true }))]) {
      expect(error).toBeInstanceOf(RateLimitError);
      expect(error).toMatchObject({ status: 429, code: 429, type: 'rate_limit_exceeded' });
    }
    expect(await rejection(client().responses.create({ ...asked, temperature: 3 }))).toMatchObject({ param: 'temperature' });
    expect(await rejection(clientAt(router.baseUrl, 'sk-wrong').responses.create(asked))).toBeInstanceOf(AuthenticationError);
  });

  it.each([{ store: true }, { previous_response_id: 'resp_1' }, { background: true }, { input: [{ type: 'item_reference' as const, id: 'msg_1' }] }])(
    'is refused what would need a store: %j',
    async (fields) => {
      const error = await rejection(client().responses.create({ ...asked, ...fields }));
      expect(error).toBeInstanceOf(BadRequestError);
      expect(error).toMatchObject({
        message: expect.stringContaining('stateless'),
        param: expect.stringMatching(/^(input\[0\]|store|background|previous_response_id)$/),
      });
    },
  );

  it('gets what came before an error in the middle, and the failed response', async () => {
    for (const reply of [{ chunks: answers.brokenAnswer }, { chunks: answers.brokenAnswer.slice(0, 2), isCut: true }]) {
      router.upstream.replyWith(reply);
      const { events, final } = await streamed();
      const whole = await client().responses.create(asked);
      expect(events.at(-1)).toMatchObject({ type: 'response.failed', error_type: 'provider_unavailable' });
      for (const response of [final, whole]) {
        expect(response).toMatchObject({ status: 'failed', output_text: 'Half an ', error: { code: 'server_error' }, error_type: 'provider_unavailable' });
      }
    }
  });

  it.each(lengthRows)('$code $when is an answer that was cut off', async ({ reply, text }) => {
    router.upstream.replyWith(reply);
    const { events, final } = await streamed();
    const whole = await client().responses.create(asked);
    expect(events.at(-1)?.type).toBe('response.incomplete');
    for (const response of [final, whole]) {
      expect(response).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' }, output_text: text, error: null });
    }
  });

  it('is answered at the path of the contract, too', async () => {
    router.upstream.replyWith({ chunks: answers.richAnswer });
    const alpha = clientAt(router.baseUrl.replace('/v1', '/alpha'));
    expect(await alpha.responses.create(asked)).toMatchObject({ status: 'completed', output_text: answers.TEXT });
    const plain = clientAt(router.baseUrl.replace('/api/v1', '/v1'));
    expect(await plain.responses.create(asked)).toMatchObject({ status: 'completed' });
    expect(await rejection(alpha.chat.completions.create({ model: MODEL, messages: [] }))).toBeInstanceOf(APIError);
  });
});

function byType(one: object, other: object): number {
  return JSON.stringify(one).localeCompare(JSON.stringify(other));
}
