import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { MAX_FRAME_BYTES } from '../bus/large-frames.ts';
import type { ProviderPart } from '../shared/contracts/router/provider-part.ts';
import { addPart, emptyAnswer } from '../shared/surfaces/answer.ts';
import { chatCompletions } from '../shared/surfaces/chat-completions/surface.ts';
import { dataIn } from '../shared/surfaces/parts/text-in.ts';
import { responses } from '../shared/surfaces/responses/surface.ts';
import { readEvents } from '../shared/surfaces/responses/test-support/read-events.ts';
import { openWireUpstream, type WireUpstream } from './clients/wire-upstream.ts';
import { openRouterInProcess, type RouterInProcess } from './helpers/router-in-process.ts';

const MOST = responses.maxStreamedTextChars ?? 0;
const prices = { prompt: '1', completion: '1' };

let odd: WireUpstream;
let sound: WireUpstream;
let router: RouterInProcess;

beforeAll(async () => {
  [odd, sound] = [await openWireUpstream(), await openWireUpstream()];
  const endpoints = ['odd', 'sound'].map((provider) => ({ provider, upstream_model: 'upstream-model', prices }));
  const config = {
    providers: [
      { slug: 'odd', name: 'Odd', kind: 'openai-compatible', base_url: odd.baseUrl },
      { slug: 'sound', name: 'Sound', kind: 'openai-compatible', base_url: sound.baseUrl },
    ],
    models: [
      { id: 'odd/one', endpoints: endpoints.slice(0, 1) },
      { id: 'odd/first', order: 'file', endpoints },
    ],
    keys: [{ id: 'one', key: '${KEY}' }],
  };
  router = await openRouterInProcess({ config, variables: { KEY: 'sk-one' } });
  sound.replyWith({ chunks: [saying('sound'), ending] });
});

afterAll(async () => {
  await router.close();
  await Promise.all([odd.close(), sound.close()]);
});

const authorization = 'Bearer sk-one';
const chunk = (delta: object, reason: string | null = null) => ({ choices: [{ index: 0, delta, finish_reason: reason }] });
const saying = (content: string) => chunk({ content });
const ending = chunk({}, 'stop');

async function post(path: string, body: object) {
  const response = await fetch(`${router.url}/api/v1${path}`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: response.status, id: response.headers.get('x-generation-id') ?? '', text: await response.text() };
}

const recorded = z.object({ data: z.object({ total_cost: z.number(), provider_name: z.string(), provider_responses: z.array(z.unknown()) }) });

async function generation(id: string) {
  const response = await fetch(`${router.url}/api/v1/generation?id=${id}`, { headers: { authorization } });
  return recorded.parse(await response.json()).data;
}

/** Of each attempt, in billionths of a US dollar: what the provider charges. */
async function attemptCosts(id: string): Promise<unknown> {
  const { rows } = await router.database.query(`select record -> 'attempts' as attempts from usage_ledger where generation_id = $1`, [id]);
  return z
    .array(z.object({ attempts: z.array(z.object({ costNano: z.number() })) }))
    .parse(rows)[0]
    ?.attempts.map(({ costNano }) => costNano);
}

describe('parallel calls of tools to which an upstream gives one id', () => {
  const tool = (name: string) => ({ type: 'function', function: { name, parameters: { type: 'object' } } });
  const input = 'hello';
  const messages = [{ role: 'user', content: input }];

  /** Id, name and arguments. */
  type Call = readonly [id: string, name: string, text: string];
  const ofMessage = z.object({
    choices: z.tuple([
      z.object({ message: z.object({ tool_calls: z.array(z.object({ id: z.string(), function: z.object({ name: z.string(), arguments: z.string() }) })) }) }),
    ]),
  });
  const ofResponse = z.object({ output: z.array(z.object({ call_id: z.string(), name: z.string(), arguments: z.string() })) });
  const callsOf = ({ output }: z.infer<typeof ofResponse>): Call[] => output.map(({ call_id, name, arguments: text }) => [call_id, name, text]);
  const wholeCall = ({ id, function: { name, arguments: text } }: { id: string; function: { name: string; arguments: string } }): Call => [id, name, text];

  const ways: [string, () => Promise<Call[]>][] = [
    [
      'a whole chat',
      async () => {
        const { text } = await post('/chat/completions', { model: 'odd/one', messages, tools: ['f', 'g', 'h'].map(tool) });
        return ofMessage.parse(JSON.parse(text)).choices[0].message.tool_calls.map(wholeCall);
      },
    ],
    [
      'a streamed chat',
      async () => {
        const { text } = await post('/chat/completions', { model: 'odd/one', messages, stream: true, tools: ['f', 'g', 'h'].map(tool) });
        const answer = emptyAnswer();
        for (const value of dataIn(Buffer.from(text))) for (const part of chatCompletions.partsIn?.(value) ?? []) addPart(answer, part);
        return answer.toolCalls.map(wholeCall);
      },
    ],
    ['a whole response', async () => callsOf(ofResponse.parse(JSON.parse((await post('/responses', { model: 'odd/one', input })).text)))],
    [
      'a streamed response',
      async () => {
        const last = readEvents((await post('/responses', { model: 'odd/one', input, stream: true })).text).at(-1);
        return callsOf(ofResponse.parse(z.object({ response: z.unknown() }).parse(last).response));
      },
    ],
  ];

  it.each(ways)('DESIGN 8: are separate, each with an id of its own and arguments that are JSON: %s', async (_, ask) => {
    const call = (index: number, name: string, text: string) => ({ index, id: 'c1', type: 'function', function: { name, arguments: text } });
    // The third has no arguments, and the connection breaks behind the finish reason.
    odd.replyWith({ chunks: [chunk({ tool_calls: [call(0, 'f', '{"a":1}'), call(1, 'g', '{"b":2}'), call(2, 'h', '')] }, 'tool_calls')], isCut: true });
    const calls = await ask();
    expect(calls.map(([, name, text]) => [name, text])).toEqual([
      ['f', '{"a":1}'],
      ['g', '{"b":2}'],
      ['h', '{}'],
    ]);
    expect(calls[0]?.[0]).toBe('c1');
    expect(new Set(calls.map(([id]) => id)).size).toBe(3);
  });
});

describe('a streamed response with more text than its last events can have', () => {
  const input = 'hello';

  it('DESIGN 8: is asked of the next endpoint where the first piece has it, and costs its caller nothing', async () => {
    odd.replyWith({ chunks: [saying('x'.repeat(MOST + 1)), ending] });
    const { status, id, text } = await post('/responses', { model: 'odd/first', input, stream: true });
    expect(status).toBe(200);
    expect(readEvents(text).at(-1)).toMatchObject({ type: 'response.completed', response: { provider: 'Sound', output_text: 'sound' } });
    const { total_cost, provider_name, provider_responses } = await generation(id);
    expect(provider_name).toBe('Sound');
    expect(provider_responses).toMatchObject([
      { provider_name: 'Odd', status: 502 },
      { provider_name: 'Sound', status: 200 },
    ]);
    expect(total_cost).toBeLessThan(0.000_01);
    // The operator pays for what the first endpoint made: half a million tokens.
    expect(await attemptCosts(id)).toEqual([expect.any(Number), Math.round(total_cost * 1e9)]);
    expect(await attemptCosts(id)).toMatchObject({ 0: Math.ceil((MOST + 1) / 4) * 1_000 + 2_000 });
  });

  it('fails without a bill where no other endpoint has the model', async () => {
    odd.replyWith({ chunks: [saying('x'.repeat(MOST + 1)), ending] });
    const { status, id, text } = await post('/responses', { model: 'odd/one', input, stream: true });
    expect([status, JSON.parse(text)]).toMatchObject([
      502,
      { error: { message: expect.stringContaining(`more than ${MOST} characters, the most that a stream`) } },
    ]);
    expect(await generation(id)).toMatchObject({ total_cost: 0 });
  });

  it('ends with response.failed, and the bill of what was sent, where a later piece has it', async () => {
    odd.replyWith({ chunks: [saying('four'), saying('x'.repeat(MOST)), ending] });
    const { status, id, text } = await post('/responses', { model: 'odd/first', input, stream: true });
    expect(status).toBe(200);
    expect(readEvents(text).at(-1)).toMatchObject({ type: 'response.failed', response: { output_text: 'four', usage: { output_tokens: 1 } } });
    expect((await generation(id)).total_cost).toBeLessThan(0.000_01);
  });

  it('is whole without the stream', async () => {
    odd.replyWith({ chunks: [saying('x'.repeat(MOST + 1)), ending] });
    const { status, text } = await post('/responses', { model: 'odd/first', input });
    expect([status, JSON.parse(text).output_text.length]).toEqual([200, MOST + 1]);
  });

  it('could not be sent: the last events of the longest text just fit one frame of the bus, whatever its characters', () => {
    const answer = emptyAnswer(false);
    const head = { id: 'gen-g1-abc', created: 7, model: 'a/one', provider: 'East', request: { messages: [] }, now: () => 9 };
    const writer = responses.partWriter(head, answer);
    // JSON has six bytes for it. A hundredth of the text takes a hundredth of the frame.
    const part: ProviderPart = { type: 'text-delta', text: '\u0001'.repeat(Math.ceil(MOST / 100)) };
    addPart(answer, part);
    writer.parts([part]);
    const hundredth = Buffer.byteLength(writer.done(answer, { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }));
    expect(hundredth * 100).toBeLessThan(MAX_FRAME_BYTES);
    expect(hundredth * 110).toBeGreaterThan(MAX_FRAME_BYTES);
  });
});
