import type { UnderstoodRequest, UpstreamScenario } from '../../services/router-worker/providers/conformance/under-test.ts';
import { openLoopbackUpstream, type RecordingUpstream, type UpstreamDialect, type UpstreamEvent } from './loopback-upstream.ts';
import { refusalOf, responsesRequest } from './responses-rules.ts';

/** OpenAI's POST /responses, which refuses what the API refuses, and has faults on demand. */
export function openResponsesUpstream(): Promise<RecordingUpstream> {
  return openLoopbackUpstream(responses);
}

const USAGE = {
  input_tokens: 12,
  input_tokens_details: { cached_tokens: 3 },
  output_tokens: 5,
  output_tokens_details: { reasoning_tokens: 1 },
  total_tokens: 17,
};

const responses: UpstreamDialect = {
  basePath: '/v1',
  eventName: (data) => /^\{"type":"([\w.]+)"/.exec(data)?.[1] ?? null,
  eventsOf,
  endMark: null,
  lateUsage: JSON.stringify({ type: 'response.completed', sequence_number: 99, response: responseOf('completed', [], USAGE) }),
  wholeAnswer: ({ text = ['Hello ', 'there'] }) => responseOf('completed', [messageOf(text.join(''), 'completed')], USAGE),
  refusalBody: ({ status, code, message, param }) => ({
    error: { message: message ?? `refused with ${status}`, type: 'loopback_error', param: param ?? null, code: code ?? null },
  }),
  refusalOf: (body) => {
    const message = refusalOf(body);
    return message === null ? null : { status: 400, message };
  },
  errorEvent: (code) => JSON.stringify({ type: 'error', sequence_number: 99, code: String(code), message: 'the engine broke', param: null }),
  malformed: '{"type":"response.output_text.delta","del',
};

function responseOf(status: string, output: readonly object[], usage: object | null, incomplete: string | null = null) {
  return {
    id: 'resp_loopback',
    object: 'response',
    created_at: 1_700_000_000,
    model: 'loopback-model-2026',
    status,
    error: null,
    incomplete_details: incomplete === null ? null : { reason: incomplete },
    output,
    usage,
    service_tier: 'default',
    parallel_tool_calls: true,
    tools: [],
  };
}

function messageOf(text: string, status: string) {
  const content = text === '' ? [] : [{ type: 'output_text', text, annotations: [], logprobs: [] }];
  return { type: 'message', id: 'msg_1', role: 'assistant', status, content };
}

function eventsOf(scenario: UpstreamScenario): UpstreamEvent[] {
  const { text = ['Hello ', 'there'], reasoning = [], signature, toolCalls = [], finish = 'stop', usage = 'before-end' } = scenario;
  let sequence = 0;
  const event = (kind: UpstreamEvent['kind'], type: string, fields: object): UpstreamEvent => {
    sequence += 1;
    return { data: JSON.stringify({ type, sequence_number: sequence, ...fields }), kind };
  };
  const incomplete = finish === 'length' ? 'max_output_tokens' : finish === 'content_filter' ? 'content_filter' : null;
  const status = incomplete === null ? 'completed' : 'incomplete';
  const output: object[] = [];
  const events = [event('head', 'response.created', { response: responseOf('in_progress', [], null) })];
  if (reasoning.length > 0 || signature !== undefined) {
    const at = { item_id: 'rs_1', output_index: output.length };
    const done = { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: reasoning.join('') }], encrypted_content: signature ?? null };
    events.push(
      event('head', 'response.output_item.added', { ...at, item: { type: 'reasoning', id: 'rs_1', summary: [] } }),
      event('head', 'response.reasoning_summary_part.added', { ...at, summary_index: 0, part: { type: 'summary_text', text: '' } }),
      ...reasoning.map((delta) => event('head', 'response.reasoning_summary_text.delta', { ...at, summary_index: 0, delta })),
      event('head', 'response.output_item.done', { ...at, item: done }),
    );
    output.push(done);
  }
  const at = { item_id: 'msg_1', output_index: output.length, content_index: 0 };
  const message = messageOf(text.join(''), 'completed');
  events.push(
    event('head', 'response.output_item.added', { ...at, item: messageOf('', 'in_progress') }),
    event('head', 'response.content_part.added', { ...at, part: { type: 'output_text', text: '', annotations: [] } }),
    ...text.map((delta) => event('text', 'response.output_text.delta', { ...at, delta, logprobs: [] })),
    event('rest', 'response.output_item.done', { ...at, item: message }),
  );
  output.push(message);
  for (const { id, name, arguments: pieces } of toolCalls) {
    const call = { item_id: `fc_${id}`, output_index: output.length };
    const item = { type: 'function_call', id: `fc_${id}`, call_id: id, name, arguments: '', status: 'in_progress' };
    const done = { ...item, arguments: pieces.join('') || '{}', status: 'completed' };
    events.push(
      event('rest', 'response.output_item.added', { ...call, item }),
      ...pieces.map((delta) => event('rest', 'response.function_call_arguments.delta', { ...call, delta })),
      event('rest', 'response.output_item.done', { ...call, item: done }),
    );
    output.push(done);
  }
  const end = event('rest', `response.${status}`, { response: responseOf(status, output, usage === 'before-end' ? USAGE : null, incomplete) });
  return [...events, end, ...(scenario.isFinishedTwice ? [end] : [])];
}

/** A request as the API reads it. */
export function understood(body: unknown): UnderstoodRequest {
  const { input, tools = [], text } = responsesRequest.parse(body);
  const instructions: string[] = [];
  const turns: UnderstoodRequest['turns'] = [];
  const turnOf = (role: 'user' | 'assistant') => {
    const last = turns.at(-1);
    if (last?.role === role) return last;
    const turn = { role, texts: [], images: [], calls: [], results: [], reasoning: [] };
    turns.push(turn);
    return turn;
  };
  for (const item of input) {
    if ('role' in item) {
      const texts = item.content.flatMap((one) => ('text' in one ? [one.text] : []));
      if (item.role === 'developer') instructions.push(...texts);
      else turnOf(item.role).texts.push(...texts);
      for (const one of item.content) if (one.type === 'input_image') turnOf('user').images.push(one.image_url);
    } else if (item.type === 'function_call') turnOf('assistant').calls.push({ id: item.call_id, name: item.name, input: JSON.parse(item.arguments) });
    else if (item.type === 'reasoning') {
      turnOf('assistant').reasoning.push({ text: item.summary.map((one) => one.text).join(''), signature: item.encrypted_content });
    } else {
      const output = typeof item.output === 'string' ? item.output : item.output.map((one) => ('text' in one ? one.text : '')).join('');
      turnOf('user').results.push({ id: item.call_id, text: output });
    }
  }
  return {
    instructions,
    turns,
    schema: text?.format?.type === 'json_schema' ? text.format.schema : null,
    tools: tools.map(({ name, parameters: schema }) => ({ name, schema })),
  };
}
