import { OpenRouter } from '@openrouter/sdk';
import { BadRequestResponseError, TooManyRequestsResponseError } from '@openrouter/sdk/models/errors';
import { OpenRouter as OpenRouter03 } from 'openrouter-sdk-0.3';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { lengthRows } from './length-errors.ts';
import { MODEL, useRouter } from './router-under-test.ts';
import * as answers from './upstream-answers.ts';

/** Both check every response and every event with their schemas. */
const router = useRouter();
const asked = { model: MODEL, input: 'How is the weather?' };
const look = { type: 'function' as const, name: 'look', parameters: answers.weatherTool.function.parameters };

const item = z.looseObject({ type: z.string() });
const response = z.looseObject({
  ...{ status: z.string(), output: z.array(item), outputText: z.string().optional(), incompleteDetails: z.looseObject({ reason: z.string() }).nullable() },
  ...{ error: z.looseObject({ code: z.string() }).nullable(), usage: z.looseObject({ totalTokens: z.number() }).nullish() },
});
const event = z.looseObject({ type: z.string(), sequenceNumber: z.number(), response: response.optional(), delta: z.string().optional() });

interface Client {
  send(fields: object): Promise<unknown>;
}
const clients: [version: string, open: () => Client][] = [
  [
    '1.3.19',
    () => {
      const client = new OpenRouter({ apiKey: router.apiKey, serverURL: router.baseUrl, retryConfig: { strategy: 'none' } });
      return { send: (fields) => client.responses.send({ responsesRequest: { ...asked, ...fields } }) };
    },
  ],
  [
    '0.3.16',
    () => {
      const client = new OpenRouter03({ apiKey: router.apiKey, serverURL: router.baseUrl });
      return { send: (fields) => client.beta.responses.send({ ...asked, ...fields }) };
    },
  ],
];

describe.each(clients)('the client of @openrouter/sdk %s', (version, open) => {
  const wholeOf = async (fields: object = {}) => response.parse(await open().send(fields));
  const eventsOf = async (fields: object = {}) => {
    const events = [];
    for await (const one of (await open().send({ ...fields, stream: true })) as AsyncIterable<unknown>) events.push(event.parse(one));
    return events;
  };

  it('reads a whole response and every event of a stream', async () => {
    router.upstream.replyWith({ chunks: answers.richAnswer });
    const whole = await wholeOf({ instructions: 'Be brief.', reasoning: { effort: 'low' }, tools: [look] });
    expect(whole).toMatchObject({ status: 'completed', outputText: answers.TEXT, usage: { totalTokens: 32 } });
    expect(whole.output.map(({ type }) => type)).toEqual(['reasoning', 'message', 'image_generation_call']);

    const events = await eventsOf({ tools: [look] });
    expect(events.map(({ type }) => type)).not.toContain('UNKNOWN');
    expect(events.map(({ sequenceNumber }) => sequenceNumber)).toEqual(events.map((_, index) => index));
    expect(events.flatMap(({ type, delta }) => (type === 'response.output_text.delta' ? [delta] : [])).join('')).toBe(answers.TEXT);
    expect(events.at(-1)).toMatchObject({ type: 'response.completed', response: { status: 'completed', usage: { totalTokens: 32 } } });
  });

  it('has tool calls and refusals', async () => {
    router.upstream.replyWith({ chunks: answers.toolAnswer });
    expect((await wholeOf({ tools: [look] })).output).toMatchObject([{}, { callId: 'call_a', arguments: '{"at":"sky"}' }, { callId: 'call_b' }]);
    expect((await eventsOf({ tools: [look] })).at(-1)?.response?.output).toMatchObject([{}, { callId: 'call_a', arguments: '{"at":"sky"}' }, {}]);

    router.upstream.replyWith({ chunks: answers.refusedAnswer });
    expect((await eventsOf()).at(-1)).toMatchObject({ type: 'response.incomplete', response: { incompleteDetails: { reason: 'content_filter' } } });
    expect(await wholeOf()).toMatchObject({ status: 'incomplete', output: [{ content: [{ type: 'refusal' }] }] });
  });

  it('throws before the first content, and reads the failed response behind it', async () => {
    router.upstream.replyWith(answers.refusal);
    for (const stream of [true, false]) {
      const error: unknown = await open()
        .send({ stream })
        .catch((thrown: unknown) => thrown);
      if (version === '1.3.19') expect(error).toBeInstanceOf(TooManyRequestsResponseError);
      expect(error).toMatchObject({ statusCode: 429, error: { code: 429 } });
    }
    router.upstream.replyWith({ chunks: answers.brokenAnswer });
    expect((await eventsOf()).at(-1)).toMatchObject({ type: 'response.failed', response: { status: 'failed', error: { code: 'server_error' } } });
    expect(await wholeOf()).toMatchObject({ status: 'failed', outputText: 'Half an ', error: { code: 'server_error' } });
  });

  it('is refused a response of the store', async () => {
    const error: unknown = await open()
      .send({ previousResponseId: 'resp_1' })
      .catch((thrown: unknown) => thrown);
    if (version === '1.3.19') expect(error).toBeInstanceOf(BadRequestResponseError);
    expect(error).toMatchObject({ statusCode: 400, error: { code: 400, message: expect.stringContaining('stateless') } });
  });

  it.each(lengthRows)('$code $when is an answer that was cut off', async ({ reply, text }) => {
    router.upstream.replyWith(reply);
    const last = (await eventsOf()).at(-1);
    expect(last?.type).toBe('response.incomplete');
    for (const cutOff of [last?.response, await wholeOf()]) {
      expect(cutOff).toMatchObject({ status: 'incomplete', incompleteDetails: { reason: 'max_output_tokens' }, outputText: text });
    }
  });
});

it('the client of @openrouter/sdk 1.3.19 reads where a response went, whole and streamed', async () => {
  const client = new OpenRouter({ apiKey: router.apiKey, serverURL: router.baseUrl, retryConfig: { strategy: 'none' } });
  const wish = { xOpenRouterMetadata: 'enabled' as const };
  router.upstream.replyWith({ chunks: answers.richAnswer });
  const whole = await client.responses.send({ ...wish, responsesRequest: { ...asked, stream: false } });
  const events = [];
  for await (const one of (await client.responses.send({ ...wish, responsesRequest: { ...asked, stream: true } })) as AsyncIterable<unknown>) events.push(one);

  expect(whole).toMatchObject({ openrouterMetadata: { requested: MODEL, endpoints: { available: [{ provider: 'Loopback', selected: true }] } } });
  expect(events.at(-1)).toMatchObject({ type: 'response.completed', response: { openrouterMetadata: { requested: MODEL, attempt: 1 } } });
});
