import { z } from 'zod';
import type { UnderstoodRequest, UpstreamScenario } from '../../services/router-worker/providers/conformance/under-test.ts';
import { readConversation, textsOf } from '../../services/router-worker/providers/scripted/conversation.ts';
import { answerBySchema } from '../../services/router-worker/providers/scripted/engine/answer-by-schema.ts';
import type { ChatRequest } from '../../shared/contracts/router/chat-request.ts';
import { openLoopbackUpstream, type RecordingUpstream, type UpstreamDialect, type UpstreamEvent } from './loopback-upstream.ts';
import { type OpenAiVendor, PLAIN_VENDOR } from './openai-vendors.ts';

/** The models that it lists; it answers for any. */
const MODELS = ['local-small', 'local-large'];

export type OpenAiUpstream = RecordingUpstream;

/** OpenAI's POST /chat/completions and GET /models as the vendor has them, and the faults of compatible servers on demand. */
export function openOpenAiUpstream(vendor: OpenAiVendor = PLAIN_VENDOR): Promise<OpenAiUpstream> {
  return openLoopbackUpstream({
    ...chatCompletions,
    engineAnswerOf,
    refusalOf: (body, path) => refusalOf(vendor, body, path),
    eventsOf: (scenario) => eventsOf(scenario, vendor),
    lateUsage: JSON.stringify({ ...chunkOf({}), choices: [], usage: usageOf(vendor) }),
    wholeAnswer: (scenario) => wholeAnswer(scenario, vendor),
  });
}

const engineQuestion = z.looseObject({
  messages: z.array(z.looseObject({ role: z.string() })),
  response_format: z.object({ json_schema: z.looseObject({ name: z.string() }) }),
});

/** As the scripted model answers it. */
function engineAnswerOf(body: unknown): { name: string; text: string } | null {
  const { data } = engineQuestion.safeParse(body);
  if (data === undefined) return null;
  const request = data as unknown as ChatRequest;
  const { earlier, last } = readConversation(request, textsOf(request));
  const { name } = data.response_format.json_schema;
  const answer = answerBySchema(name, earlier, last);
  return answer === null ? null : { name, text: JSON.stringify(answer) };
}

function usageOf({ cachedIn, countsReasoningApart }: OpenAiVendor) {
  return {
    prompt_tokens: 12,
    completion_tokens: countsReasoningApart ? 4 : 5,
    total_tokens: 17,
    completion_tokens_details: { reasoning_tokens: 1, audio_tokens: 0 },
    ...(cachedIn === 'prompt_tokens_details' ? { prompt_tokens_details: { cached_tokens: 3, audio_tokens: 0 } } : { prompt_cache_hit_tokens: 3 }),
  };
}

/** Not with a field's name: the adapter would send the request again without it. */
function refusalOf(vendor: OpenAiVendor, body: unknown, path: string): { status: number; message: string } | null {
  if (path !== `/v1${vendor.path}`) return { status: 404, message: `there is no ${path}` };
  const { messages, ...fields } = z.looseObject({ messages: z.array(z.looseObject({})) }).parse(body);
  if (vendor.refused.some((name) => name in fields)) return { status: 400, message: 'there are extra fields in the request' };
  const back = vendor.takesBack === 'reasoning_details' ? ['reasoning', 'reasoning_details'] : [vendor.takesBack];
  const isOdd = (message: object) =>
    (!vendor.takesNames && 'name' in message) ||
    ['reasoning', 'reasoning_content', 'reasoning_details'].some((name) => name in message && !back.includes(name));
  return messages.some(isOdd) ? { status: 400, message: 'there are extra fields in a message' } : null;
}

const chatCompletions = {
  basePath: '/v1',
  getBody: { object: 'list', data: MODELS.map((id) => ({ id, object: 'model' })) },
  endMark: '[DONE]',
  refusalBody: ({ status, code, message, param }) => ({
    error: { message: message ?? `refused with ${status}`, type: 'loopback_error', param: param ?? null, code: code ?? null },
  }),
  errorEvent: (code) => JSON.stringify({ error: { message: 'the engine broke', type: 'server_error', code } }),
  malformed: '{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"conte',
} satisfies Partial<UpstreamDialect>;

interface Delta {
  role?: string;
  content?: string | null | object[];
  reasoning?: string;
  reasoning_content?: string;
  reasoning_details?: object[];
  tool_calls?: unknown[];
}

function chunkOf(delta: Delta, finishReason: string | null = null) {
  return {
    id: 'chatcmpl-loopback',
    object: 'chat.completion.chunk',
    created: 1_700_000_000,
    model: 'loopback-model-2026',
    system_fingerprint: null,
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finishReason }],
    usage: null,
  };
}

function eventsOf(scenario: UpstreamScenario, vendor: OpenAiVendor): UpstreamEvent[] {
  const { text = ['Hello ', 'there'], toolCalls = [], finish = 'stop', usage = 'before-end' } = scenario;
  const calls = toolCalls.flatMap(({ id, name, arguments: pieces }, index) => [
    chunkOf({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }),
    ...pieces.map((piece) => chunkOf({ tool_calls: [{ index, function: { arguments: piece } }] })),
  ]);
  const event = (kind: UpstreamEvent['kind']) => (chunk: object) => ({ data: JSON.stringify(chunk), kind });
  const end = chunkOf({}, finish);
  const count = usageOf(vendor);
  const isCounted = usage === 'before-end';
  return [
    event('head')(chunkOf({ role: 'assistant', content: '' })),
    ...reasoningDeltas(scenario, vendor)
      .map((delta) => chunkOf(delta))
      .map(event('head')),
    ...text.map((piece) => chunkOf({ content: piece })).map(event('text')),
    ...calls.map(event('rest')),
    event('rest')({
      ...end,
      ...(isCounted && vendor.usageIn === 'last-choice' && { usage: count }),
      ...(isCounted && vendor.usageIn === 'x_groq' && { x_groq: { id: 'req_1', usage: count } }),
    }),
    ...(scenario.isFinishedTwice ? [event('rest')(end)] : []),
    ...(isCounted && vendor.usageIn === 'own-chunk' ? [event('rest')({ ...chunkOf({}), choices: [], usage: count })] : []),
  ];
}

function reasoningDeltas({ reasoning = [], signature, encrypted }: UpstreamScenario, { reasoningIn }: OpenAiVendor): Delta[] {
  switch (reasoningIn) {
    case 'reasoning_content':
      return reasoning.map((piece) => ({ reasoning_content: piece }));
    case 'reasoning':
      return reasoning.map((piece) => ({ content: '', reasoning: piece }));
    case 'pieces':
      return reasoning.map((piece) => ({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: piece }] }] }));
    case 'reasoning_details': {
      const detail = { type: 'reasoning.text', index: 0, format: 'unknown' };
      return [
        ...reasoning.map((piece) => ({ reasoning: piece, reasoning_details: [{ ...detail, text: piece }] })),
        ...(signature === undefined ? [] : [{ reasoning_details: [{ ...detail, signature }] }]),
        ...(encrypted === undefined ? [] : [{ reasoning_details: [{ ...detail, type: 'reasoning.encrypted', index: 1, data: encrypted }] }]),
      ];
    }
  }
}

function wholeAnswer({ text = ['Hello ', 'there'], finish = 'stop' }: UpstreamScenario, vendor: OpenAiVendor) {
  const message = { role: 'assistant', content: text.join(''), refusal: null };
  return {
    id: 'chatcmpl-loopback',
    object: 'chat.completion',
    created: 1_700_000_000,
    model: 'loopback-model-2026',
    choices: [{ index: 0, message, logprobs: null, finish_reason: finish }],
    usage: usageOf(vendor),
  };
}

const text = z.union([z.string(), z.array(z.object({ type: z.literal('text'), text: z.string() }))]);
const item = z.union([
  z.object({ type: z.literal('text'), text: z.string() }),
  z.object({ type: z.literal('image_url'), image_url: z.object({ url: z.string() }) }),
]);
const named = { name: z.string().optional() };
const detail = z.object({ type: z.string(), text: z.string().optional(), signature: z.string().optional(), data: z.string().optional() });
const reasoned = { reasoning: z.string().optional(), reasoning_content: z.string().optional(), reasoning_details: z.array(detail).optional() };
const called = z.object({ id: z.string(), type: z.literal('function'), function: z.object({ name: z.string(), arguments: z.string() }) });
/** The fields that the suite asks for, as npm openai 6.49.0 has them (ChatCompletionCreateParams). */
const completionRequest = z.object({
  messages: z.array(
    z.discriminatedUnion('role', [
      z.strictObject({ role: z.literal('system'), content: text, ...named }),
      z.strictObject({ role: z.literal('user'), content: z.union([z.string(), z.array(item)]), ...named }),
      z.strictObject({ role: z.literal('assistant'), content: text.nullable(), tool_calls: z.array(called).optional(), ...reasoned }),
      z.strictObject({ role: z.literal('tool'), content: text, tool_call_id: z.string() }),
    ]),
  ),
  tools: z.array(z.object({ type: z.literal('function'), function: z.object({ name: z.string(), parameters: z.unknown() }) })).optional(),
  response_format: z
    .discriminatedUnion('type', [
      z.object({ type: z.literal('text') }),
      z.object({ type: z.literal('json_schema'), json_schema: z.object({ name: z.string(), schema: z.unknown() }) }),
    ])
    .optional(),
});

type Turn = UnderstoodRequest['turns'][number];

/** A request as the API reads it. */
export function understood(body: unknown): UnderstoodRequest {
  const { messages, tools = [], response_format: format } = completionRequest.parse(body);
  const instructions: string[] = [];
  const turns: Turn[] = [];
  for (const message of messages) {
    if (message.role === 'system') {
      instructions.push(...textsIn(message.content));
      continue;
    }
    const role = message.role === 'assistant' ? 'assistant' : 'user';
    let turn = turns.at(-1);
    if (turn?.role !== role) {
      turn = { role, texts: [], images: [], calls: [], results: [], reasoning: [] };
      turns.push(turn);
    }
    if (message.role === 'tool') turn.results.push({ id: message.tool_call_id, text: textsIn(message.content).join('') });
    else turn.texts.push(...textsIn(message.content));
    if (message.role === 'user' && typeof message.content !== 'string')
      turn.images.push(...message.content.flatMap((one) => (one.type === 'image_url' ? [one.image_url.url] : [])));
    if (message.role === 'assistant') {
      turn.reasoning.push(...reasoningIn(message));
      for (const {
        id,
        function: { name, arguments: given },
      } of message.tool_calls ?? [])
        turn.calls.push({ id, name, input: JSON.parse(given || '{}') });
    }
  }
  return {
    instructions,
    turns,
    schema: format?.type === 'json_schema' ? format.json_schema.schema : null,
    tools: tools.map(({ function: { name, parameters: schema } }) => ({ name, schema })),
  };
}

function textsIn(content: string | null | readonly z.infer<typeof item>[]): string[] {
  if (typeof content === 'string') return [content];
  return (content ?? []).flatMap((one) => (one.type === 'text' ? [one.text] : []));
}

/** Pieces of one text are joined. */
function reasoningIn({ reasoning_content: content, reasoning_details: details = [] }: z.infer<z.ZodObject<typeof reasoned>>): Turn['reasoning'] {
  const ofText = details.filter(({ type }) => type === 'reasoning.text');
  const joined = (read: (one: z.infer<typeof detail>) => string | undefined) => ofText.map((one) => read(one) ?? '').join('');
  return [
    ...(content === undefined ? [] : [{ text: content, signature: '' }]),
    ...(ofText.length === 0 ? [] : [{ text: joined((one) => one.text), signature: joined((one) => one.signature) }]),
    ...details.flatMap(({ data }) => (data === undefined ? [] : [{ text: null, signature: data }])),
  ];
}
