import type { UnderstoodRequest, UpstreamScenario } from '../../services/router-worker/providers/conformance/under-test.ts';
import { messagesRequest, refusalOf } from './anthropic-rules.ts';
import { openLoopbackUpstream, type RecordingUpstream, type UpstreamDialect, type UpstreamEvent } from './loopback-upstream.ts';

/** Anthropic's POST /v1/messages, which refuses what the API refuses, and has faults on demand. */
export function openAnthropicUpstream(): Promise<RecordingUpstream> {
  return openLoopbackUpstream(messages);
}

const CACHE_WRITTEN = 4;
const USAGE = { input_tokens: 5, cache_creation_input_tokens: CACHE_WRITTEN, cache_read_input_tokens: 3 };
/** The start has counted the first token; the end has all. */
const START_USAGE = { ...USAGE, cache_creation: null, output_tokens: 1, output_tokens_details: null, server_tool_use: null, service_tier: 'standard' };
const END_USAGE = { ...USAGE, output_tokens: 5, output_tokens_details: { thinking_tokens: 1 }, server_tool_use: null };
const STOP_REASONS = { stop: 'end_turn', length: 'max_tokens', tool_calls: 'tool_use', content_filter: 'refusal' } as const;

/** The API's types of errors, by status. */
const TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  500: 'api_error',
  504: 'timeout_error',
  503: 'overloaded_error',
  529: 'overloaded_error',
};

/** What the API says for what the suite names by OpenAI's codes. */
const WORDS: Readonly<Record<string, { type?: string; message?: string }>> = {
  context_length_exceeded: { type: 'invalid_request_error', message: 'prompt is too long: 210000 tokens > 200000 maximum' },
  content_policy_violation: { type: 'invalid_request_error', message: 'Output blocked by content filtering policy' },
  invalid_request_error: { type: 'invalid_request_error' },
  insufficient_quota: { type: 'billing_error' },
  invalid_api_key: { type: 'authentication_error' },
  model_not_found: { type: 'not_found_error' },
  rate_limit_exceeded: { type: 'rate_limit_error' },
  overloaded_error: { type: 'overloaded_error' },
  timeout: { type: 'timeout_error' },
  server_error: { type: 'api_error' },
};

const messages: UpstreamDialect = {
  basePath: '',
  eventName: (data) => /^\{"type":"(\w+)"/.exec(data)?.[1] ?? null,
  eventsOf,
  endMark: JSON.stringify({ type: 'message_stop' }),
  lateUsage: JSON.stringify({ type: 'message_delta', delta: { stop_reason: null, stop_sequence: null }, usage: END_USAGE }),
  wholeAnswer,
  refusalBody: ({ status, code, message }) => errorOf(TYPES[status] ?? 'api_error', code, message ?? `refused with ${status}`),
  refusalOf: (body) => {
    const message = refusalOf(body);
    return message === null ? null : { status: 400, message };
  },
  errorEvent: (code) => JSON.stringify(errorOf(TYPES[Number(code)] ?? 'api_error', String(code), 'the engine broke')),
  malformed: '{"type":"content_block_delta","index":0,"delta":{"type":"text_del',
};

function errorOf(type: string, code: string | undefined, message: string) {
  const words = code === undefined ? undefined : WORDS[code];
  const details = code === undefined || words !== undefined || /^\d+$/.test(code) ? {} : { details: { error_code: code } };
  return { type: 'error', error: { type: words?.type ?? type, message: words?.message ?? message, ...details }, request_id: 'req_loopback' };
}

function messageOf(content: readonly object[], stopReason: string | null, usage: object) {
  const head = { id: 'msg_loopback', type: 'message', role: 'assistant', model: 'loopback-model-2026' };
  return { ...head, content, stop_reason: stopReason, stop_sequence: null, stop_details: null, container: null, usage };
}

/** A block as it starts, and its deltas with their kind. */
interface Streamed {
  block: object;
  deltas: object[];
  kind: UpstreamEvent['kind'];
}

function eventsOf(scenario: UpstreamScenario): UpstreamEvent[] {
  const { finish = 'stop', usage = 'before-end' } = scenario;
  const end = {
    type: 'message_delta',
    delta: { stop_reason: STOP_REASONS[finish], stop_sequence: null },
    usage: usage === 'before-end' ? END_USAGE : null,
  };
  const event = (kind: UpstreamEvent['kind'], data: object): UpstreamEvent => ({ data: JSON.stringify(data), kind });
  return [
    event('head', { type: 'message_start', message: messageOf([], null, START_USAGE) }),
    ...blocksOf(scenario).flatMap(({ block, deltas, kind }, index) => [
      event(kind === 'rest' ? 'rest' : 'head', { type: 'content_block_start', index, content_block: block }),
      ...(kind === 'text' ? [event('head', { type: 'ping' })] : []),
      ...deltas.map((delta) => event(kind, { type: 'content_block_delta', index, delta })),
      event(kind === 'head' ? 'head' : 'rest', { type: 'content_block_stop', index }),
    ]),
    event('rest', end),
    ...(scenario.isFinishedTwice ? [event('rest', end)] : []),
  ];
}

function blocksOf({ text = ['Hello ', 'there'], reasoning = [], signature, encrypted, toolCalls = [] }: UpstreamScenario): Streamed[] {
  const thinking = reasoning.map((piece) => ({ type: 'thinking_delta', thinking: piece }));
  const signed = signature === undefined ? [] : [{ type: 'signature_delta', signature }];
  return [
    ...(thinking.length + signed.length === 0
      ? []
      : [{ block: { type: 'thinking', thinking: '', signature: '' }, deltas: [...thinking, ...signed], kind: 'head' as const }]),
    ...(encrypted === undefined ? [] : [{ block: { type: 'redacted_thinking', data: encrypted }, deltas: [], kind: 'head' as const }]),
    { block: { type: 'text', text: '', citations: null }, deltas: text.map((piece) => ({ type: 'text_delta', text: piece })), kind: 'text' },
    ...toolCalls.map(({ id, name, arguments: pieces }) => ({
      block: { type: 'tool_use', id, name, input: {} },
      deltas: ['', ...pieces].map((piece) => ({ type: 'input_json_delta', partial_json: piece })),
      kind: 'rest' as const,
    })),
  ];
}

function wholeAnswer({ text = ['Hello ', 'there'], finish = 'stop' }: UpstreamScenario) {
  return messageOf([{ type: 'text', text: text.join(''), citations: null }], STOP_REASONS[finish], { ...START_USAGE, ...END_USAGE });
}

/** A request as the API reads it. */
export function understood(body: unknown): UnderstoodRequest {
  const { system = [], messages: turns, tools = [], output_config: output } = messagesRequest.parse(body);
  return {
    instructions: system.map(({ text }) => text),
    turns: turns.map(({ role, content }) => ({
      role,
      texts: content.flatMap((block) => (block.type === 'text' ? [block.text] : [])),
      images: content.flatMap((block) => (block.type === 'image' ? [imageIn(block.source)] : [])),
      calls: content.flatMap((block) => (block.type === 'tool_use' ? [{ id: block.id, name: block.name, input: block.input }] : [])),
      results: content.flatMap((block) =>
        block.type === 'tool_result'
          ? [{ id: block.tool_use_id, text: (block.content ?? []).map((one) => (one.type === 'text' ? one.text : '')).join('') }]
          : [],
      ),
      reasoning: content.flatMap((block): { text: string | null; signature: string }[] => {
        if (block.type === 'thinking') return [{ text: block.thinking, signature: block.signature }];
        return block.type === 'redacted_thinking' ? [{ text: null, signature: block.data }] : [];
      }),
    })),
    schema: output?.format?.schema ?? null,
    tools: tools.flatMap((tool) => ('input_schema' in tool ? [{ name: tool.name, schema: tool.input_schema }] : [])),
  };
}

type Image = Extract<ReturnType<typeof messagesRequest.parse>['messages'][number]['content'][number], { type: 'image' }>;

function imageIn(source: Image['source']): string {
  if (source.type === 'url') return source.url;
  return source.type === 'base64' ? `data:${source.media_type};base64,${source.data}` : '';
}
