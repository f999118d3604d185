import { z } from 'zod';
import type { UnderstoodRequest, UpstreamScenario } from '../../services/router-worker/providers/conformance/under-test.ts';
import { openLoopbackUpstream, type RecordingUpstream, type UpstreamDialect, type UpstreamEvent } from './loopback-upstream.ts';

/** The models that it lists; it answers for any. */
const MODELS = ['local-small', 'local-large'];

export type OpenAiUpstream = RecordingUpstream;

/** OpenAI's POST /chat/completions and GET /models, and the faults of compatible servers on demand. */
export function openOpenAiUpstream(): Promise<OpenAiUpstream> {
  return openLoopbackUpstream(chatCompletions);
}

const USAGE = {
  prompt_tokens: 12,
  completion_tokens: 5,
  total_tokens: 17,
  prompt_tokens_details: { cached_tokens: 3, audio_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 1, audio_tokens: 0 },
};

const chatCompletions: UpstreamDialect = {
  basePath: '/v1',
  getBody: { object: 'list', data: MODELS.map((id) => ({ id, object: 'model' })) },
  eventsOf,
  endMark: '[DONE]',
  lateUsage: JSON.stringify({ ...chunkOf({}), choices: [], usage: USAGE }),
  wholeAnswer,
  refusalBody: ({ status, code, message, param }) => ({
    error: { message: message ?? `refused with ${status}`, type: 'loopback_error', param: param ?? null, code: code ?? null },
  }),
  errorEvent: (code) => JSON.stringify({ error: { message: 'the engine broke', type: 'server_error', code } }),
  malformed: '{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"conte',
};

interface Delta {
  role?: string;
  content?: string | null;
  reasoning_content?: string;
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

function eventsOf(scenario: UpstreamScenario): UpstreamEvent[] {
  const { text = ['Hello ', 'there'], reasoning = [], toolCalls = [], finish = 'stop', usage = 'before-end' } = scenario;
  const calls = toolCalls.flatMap(({ id, name, arguments: pieces }, index) => [
    chunkOf({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }),
    ...pieces.map((piece) => chunkOf({ tool_calls: [{ index, function: { arguments: piece } }] })),
  ]);
  const end = chunkOf({}, finish);
  const event = (kind: UpstreamEvent['kind']) => (chunk: object) => ({ data: JSON.stringify(chunk), kind });
  return [
    event('head')(chunkOf({ role: 'assistant', content: '' })),
    ...reasoning.map((piece) => chunkOf({ reasoning_content: piece })).map(event('rest')),
    ...text.map((piece) => chunkOf({ content: piece })).map(event('text')),
    ...calls.map(event('rest')),
    event('rest')(end),
    ...(scenario.isFinishedTwice ? [event('rest')(end)] : []),
    ...(usage === 'before-end' ? [event('rest')({ ...chunkOf({}), choices: [], usage: USAGE })] : []),
  ];
}

function wholeAnswer({ text = ['Hello ', 'there'], finish = 'stop' }: UpstreamScenario) {
  const message = { role: 'assistant', content: text.join(''), refusal: null };
  return {
    id: 'chatcmpl-loopback',
    object: 'chat.completion',
    created: 1_700_000_000,
    model: 'loopback-model-2026',
    choices: [{ index: 0, message, logprobs: null, finish_reason: finish }],
    usage: USAGE,
  };
}

const text = z.union([z.string(), z.array(z.object({ type: z.literal('text'), text: z.string() }))]);
const item = z.union([
  z.object({ type: z.literal('text'), text: z.string() }),
  z.object({ type: z.literal('image_url'), image_url: z.object({ url: z.string() }) }),
]);
const called = z.object({ id: z.string(), type: z.literal('function'), function: z.object({ name: z.string(), arguments: z.string() }) });
/** The fields that the suite asks for, as npm openai 6.49.0 has them (ChatCompletionCreateParams). */
const completionRequest = z.object({
  messages: z.array(
    z.discriminatedUnion('role', [
      z.strictObject({ role: z.literal('system'), content: text }),
      z.strictObject({ role: z.literal('user'), content: z.union([z.string(), z.array(item)]) }),
      z.strictObject({ role: z.literal('assistant'), content: text.nullable(), tool_calls: z.array(called).optional() }),
      z.strictObject({ role: z.literal('tool'), content: text, tool_call_id: z.string() }),
    ]),
  ),
  tools: z.array(z.object({ type: z.literal('function'), function: z.object({ name: z.string(), parameters: z.unknown() }) })).optional(),
  response_format: z.object({ type: z.literal('json_schema'), json_schema: z.object({ name: z.string(), schema: z.unknown() }) }).optional(),
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
    schema: format?.json_schema.schema ?? null,
    tools: tools.map(({ function: { name, parameters: schema } }) => ({ name, schema })),
  };
}

function textsIn(content: string | null | readonly z.infer<typeof item>[]): string[] {
  if (typeof content === 'string') return [content];
  return (content ?? []).flatMap((one) => (one.type === 'text' ? [one.text] : []));
}
