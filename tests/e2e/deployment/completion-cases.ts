import OpenAI from 'openai';
import { beforeAll, describe, expect, it } from 'vitest';
import type { DeploymentUnderTest } from '../../helpers/deployment-under-test.ts';
import type { SharedDeployment } from './shared-deployment.ts';

const MODEL = 'scripted/assistant';
const weather = {
  type: 'function' as const,
  function: {
    name: 'get_weather',
    description: 'The weather in a city',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
};

export function completionCases(shared: () => SharedDeployment): void {
  describe('the openai client', () => {
    let deployment: DeploymentUnderTest;
    let client: OpenAI;

    beforeAll(() => {
      deployment = shared().deployment;
      client = clientWith(deployment.keys.routerKey);
    });

    /** Each request goes to the next gateway. */
    function clientWith(apiKey: string): OpenAI {
      const baseURL = deployment.nextRouterUrl();
      const elsewhere = (url: string | URL | Request, init?: RequestInit) => fetch(String(url).replace(baseURL, deployment.nextRouterUrl()), init);
      return new OpenAI({ baseURL: `${baseURL}/api/v1`, apiKey, maxRetries: 0, timeout: 60_000, fetch: elsewhere });
    }

    it('streams a completion and accumulates it: role, text, finish, usage, one id', async () => {
      const chunks: OpenAI.ChatCompletionChunk[] = [];
      const stream = client.chat.completions.stream({ model: MODEL, messages: [{ role: 'user', content: 'Hello! What can you do?' }] });
      stream.on('chunk', (chunk) => chunks.push(chunk));
      const completion = await stream.finalChatCompletion();

      expect(completion.choices[0]?.message.content).toMatch(/\w+ \w+/);
      expect(completion.choices[0]?.finish_reason).toBe('stop');
      expect(completion.model).toBe(MODEL);
      expect(completion.id).toMatch(/^gen-/);
      expect(new Set(chunks.map((chunk) => chunk.id))).toEqual(new Set([completion.id]));
      expect(chunks.length).toBeGreaterThan(5);
      expect(chunks.filter((chunk) => chunk.usage)).toHaveLength(1);
    });

    it('gets the same text in a whole answer as in a stream', async () => {
      const body = { model: MODEL, messages: [{ role: 'user' as const, content: 'What is a quay?' }] };
      const whole = await client.chat.completions.create(body);
      const streamed = await client.chat.completions.stream(body).finalChatCompletion();

      expect(whole.choices[0]?.message.content).toBe(streamed.choices[0]?.message.content);
      expect(whole.usage?.total_tokens).toBeGreaterThan(0);
    });

    it('gets a tool call in fragments, sends the result back, and gets an answer made from it', async () => {
      const question = { role: 'user' as const, content: 'What is the weather in city: "Lisbon"?' };
      const first = await client.chat.completions
        .stream({ model: MODEL, messages: [question], tools: [weather], tool_choice: 'required' })
        .finalChatCompletion();
      const call = first.choices[0]?.message.tool_calls?.[0];
      expect(first.choices[0]?.finish_reason).toBe('tool_calls');
      if (call?.type !== 'function') throw new Error('no function was called');
      expect(call.function.name).toBe('get_weather');
      expect(JSON.parse(call.function.arguments)).toEqual({ city: 'Lisbon' });

      const message = first.choices[0]?.message;
      if (message === undefined) throw new Error('no message came');
      const result = { role: 'tool' as const, tool_call_id: call.id, content: 'Lisbon: 21 degrees and sunny' };
      const second = await client.chat.completions.create({ model: MODEL, messages: [question, message, result], tools: [weather] });
      expect(second.choices[0]?.message.content).toContain('21 degrees');
    });

    it('gets an AuthenticationError for a bad key', async () => {
      const refused = clientWith('sk-wrong').chat.completions.create({ model: MODEL, messages: [{ role: 'user', content: 'hi' }] });

      await expect(refused).rejects.toBeInstanceOf(OpenAI.AuthenticationError);
      await expect(refused).rejects.toMatchObject({ status: 401, code: 401, type: 'authentication' });
    });

    it.each([
      ['temperature', { temperature: 9 }],
      ['messages[0].content', { messages: [{ role: 'user', content: 7 }] }],
      ['tools[0].function.name', { tools: [{ type: 'function', function: {} }] }],
    ])('gets a BadRequestError that names %s', async (param, fields) => {
      const body = { model: MODEL, messages: [{ role: 'user', content: 'hi' }], ...fields };
      const refused = client.chat.completions.create(body as unknown as OpenAI.ChatCompletionCreateParamsNonStreaming);

      await expect(refused).rejects.toBeInstanceOf(OpenAI.BadRequestError);
      await expect(refused).rejects.toMatchObject({ status: 400, code: 400, param });
    });

    it('gets a BadRequestError for a model that no provider serves', async () => {
      const refused = client.chat.completions.create({ model: 'unknown/nothing', messages: [{ role: 'user', content: 'hi' }] });

      await expect(refused).rejects.toMatchObject({ status: 400, message: expect.stringContaining('unknown/nothing is not a valid model ID') });
    });

    it.each([
      ['500', 502],
      ['429', 429],
      ['529', 503],
      ['connect', 502],
      ['malformed', 502],
      ['empty', 502],
      ['error-event', 502],
    ])('gets the proper status when the provider fails with %s before anything was shown', async (failure, status) => {
      for (const stream of [true, false]) {
        const refused = client.chat.completions.create({ model: MODEL, stream, messages: [{ role: 'user', content: `!fail ${failure}` }] });
        await expect(refused, `stream ${stream}`).rejects.toMatchObject({ status });
      }
    });

    it('gets the parts that were streamed and then an error when the provider breaks off: never an end that looks like success', async () => {
      const stream = await client.chat.completions.create({ model: MODEL, stream: true, messages: [{ role: 'user', content: '!fail cut after=3' }] });
      let text = '';
      const reading = (async () => {
        for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
      })();

      await expect(reading).rejects.toMatchObject({ code: 502 });
      expect(text).not.toBe('');
    });

    it('ends a broken stream with the error chunk and no [DONE]', async () => {
      const response = await fetch(`${deployment.nextRouterUrl()}/api/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${deployment.keys.routerKey}`, 'content-type': 'application/json' },
        body: JSON.stringify({ stream: true, messages: [{ role: 'user', content: '!fail cut after=3' }] }),
      });
      const events = (await response.text()).split('\n\n').filter((event) => event.includes('data: '));

      expect(response.status).toBe(200);
      const last = JSON.parse(events.at(-1)?.split('data: ')[1] ?? '{}');
      expect(last).toMatchObject({
        object: 'chat.completion.chunk',
        error: { code: 502, metadata: { error_type: 'provider_unavailable' } },
        choices: [{ index: 0, delta: { content: '' }, finish_reason: 'error' }],
      });
    });

    it('gets the error of a broken answer inside its choice in a whole answer', async () => {
      const completion = await client.chat.completions.create({ model: MODEL, messages: [{ role: 'user', content: '!fail cut after=3' }] });

      expect(completion.choices[0]).toMatchObject({ finish_reason: 'error', error: { code: 502 } });
      expect(completion.choices[0]?.message.content).not.toBe('');
    });

    it('lists the models', async () => {
      const { data } = await client.models.list();

      expect(data.map((model) => model.id)).toEqual([MODEL, 'scripted/embedding', 'local/universal-sentence-encoder-lite']);
    });

    it('respects max_tokens and stop', async () => {
      const messages = [{ role: 'user' as const, content: '!repeat 50 one two three four five' }];
      const short = await client.chat.completions.create({ model: MODEL, messages, max_tokens: 4 });
      expect(short.choices[0]?.finish_reason).toBe('length');
      expect(short.usage?.completion_tokens).toBe(4);
      const stopped = await client.chat.completions.create({ model: MODEL, messages, stop: ['three'] });
      expect(stopped.choices[0]?.finish_reason).toBe('stop');
      expect(stopped.choices[0]?.message.content).not.toContain('three');
    });

    it('gets the generation id in a header, and its session ids echoed', async () => {
      const { data, response } = await client.chat.completions
        .create({ model: MODEL, messages: [{ role: 'user', content: 'hi' }], session_id: 'a-session' } as OpenAI.ChatCompletionCreateParamsNonStreaming)
        .withResponse();

      expect(response.headers.get('x-generation-id')).toBe(data.id);
    });
  });
}
