import type { UpstreamScenario } from '../../services/router-worker/providers/conformance/under-test.ts';
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
