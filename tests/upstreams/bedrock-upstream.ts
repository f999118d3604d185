import { EventStreamCodec } from '@smithy/eventstream-codec';
import type { UnderstoodRequest, UpstreamScenario } from '../../services/router-worker/providers/conformance/under-test.ts';
import { converseRequest, refusalOf } from './bedrock-rules.ts';
import { openLoopbackUpstream, type RecordingUpstream, type UpstreamDialect, type UpstreamEvent } from './loopback-upstream.ts';

/** Bedrock's POST /model/{model}/converse-stream, which refuses what the API refuses, and has faults on demand. */
export function openBedrockUpstream(): Promise<RecordingUpstream> {
  return openLoopbackUpstream(converse);
}

const USAGE = { inputTokens: 5, outputTokens: 5, totalTokens: 17, cacheReadInputTokens: 3, cacheWriteInputTokens: 4 };
const METADATA = { usage: USAGE, metrics: { latencyMs: 7 } };
const STOP_REASONS = { stop: 'end_turn', length: 'max_tokens', tool_calls: 'tool_use', content_filter: 'guardrail_intervened' } as const;

/** The API's exceptions, by status. */
const TYPES: Readonly<Record<number, string>> = {
  400: 'ValidationException',
  403: 'AccessDeniedException',
  404: 'ResourceNotFoundException',
  408: 'ModelTimeoutException',
  429: 'ThrottlingException',
  500: 'InternalServerException',
  503: 'ServiceUnavailableException',
};

/** What the API says for what the suite names by OpenAI's codes. */
const WORDS: Readonly<Record<string, { type: string; message?: string }>> = {
  context_length_exceeded: { type: 'ValidationException', message: 'Input is too long for requested model.' },
  content_policy_violation: { type: 'ValidationException', message: 'Output blocked by content filtering policy' },
  invalid_request_error: { type: 'ValidationException' },
  invalid_api_key: { type: 'UnauthorizedException' },
  model_not_found: { type: 'ResourceNotFoundException' },
  rate_limit_exceeded: { type: 'ThrottlingException' },
  overloaded_error: { type: 'ServiceUnavailableException' },
  timeout: { type: 'ModelTimeoutException' },
  server_error: { type: 'InternalServerException' },
};
/** That a stream has as events. */
const IN_STREAM: ReadonlySet<string> = new Set([
  ...['InternalServerException', 'ModelStreamErrorException', 'ValidationException', 'ThrottlingException', 'ServiceUnavailableException'],
]);

const codec = new EventStreamCodec(
  (bytes) => (typeof bytes === 'string' ? bytes : Buffer.from(bytes).toString('utf8')),
  (text) => Buffer.from(text),
);

/** @param data the frame's headers but for `:`, as a line of JSON, and its body */
export function frameOf(data: string): Uint8Array {
  const [head = '', body = ''] = data.split('\n', 2);
  const headers = Object.entries(JSON.parse(head) as Record<string, string>).map(([name, value]) => [`:${name}`, { type: 'string' as const, value }]);
  return codec.encode({ headers: Object.fromEntries(headers), body: Buffer.from(body) });
}

/** The data of an event, as `frameOf` takes it. */
export function eventData(type: string, body: object | string): string {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return `${JSON.stringify({ 'event-type': type, 'content-type': 'application/json', 'message-type': 'event' })}\n${text}`;
}

/** Of an exception in a stream. @param type as in `x-amzn-errortype` */
export function exceptionData(type: string, message: string): string {
  if (!IN_STREAM.has(type)) return `${JSON.stringify({ 'message-type': 'error', 'error-code': type, 'error-message': message })}\n`;
  const name = `${type[0]?.toLowerCase()}${type.slice(1)}`;
  return `${JSON.stringify({ 'exception-type': name, 'content-type': 'application/json', 'message-type': 'exception' })}\n${JSON.stringify({ message })}`;
}

/** A prelude that states 64 MiB. */
const ENDLESS_HEAD = Buffer.from([4, 0, 0, 0]);

const converse: UpstreamDialect = {
  basePath: '',
  framing: { contentType: 'application/vnd.amazon.eventstream', frame: frameOf, endlessHead: ENDLESS_HEAD },
  eventsOf,
  endMark: null,
  lateUsage: eventData('metadata', METADATA),
  wholeAnswer: ({ text = ['Hello ', 'there'], finish = 'stop' }) => ({
    output: { message: { role: 'assistant', content: [{ text: text.join('') }] } },
    stopReason: STOP_REASONS[finish],
    ...METADATA,
  }),
  refusalBody: ({ status, code, message }) => ({ message: (code === undefined ? undefined : WORDS[code]?.message) ?? message ?? `refused with ${status}` }),
  refusalHeaders: ({ status, code }) => {
    const type = (code === undefined ? undefined : (WORDS[code]?.type ?? code)) ?? TYPES[status];
    return type === undefined ? {} : { 'x-amzn-errortype': `${type}:http://internal.amazon.com/coral/com.amazon.bedrock/` };
  },
  refusalOf: (body) => {
    const message = refusalOf(body);
    return message === null ? null : { status: 400, message };
  },
  errorEvent: (code) => {
    const words = WORDS[code];
    return exceptionData(words?.type ?? TYPES[Number(code)] ?? String(code), words?.message ?? 'the engine broke');
  },
  malformed: eventData('contentBlockDelta', '{"contentBlockIndex":0,"delta":{"te'),
};

/** The deltas of one block, with what starts it. */
interface Streamed {
  start?: object;
  deltas: object[];
  kind: UpstreamEvent['kind'];
}

function eventsOf(scenario: UpstreamScenario): UpstreamEvent[] {
  const { finish = 'stop', usage = 'before-end' } = scenario;
  const event = (kind: UpstreamEvent['kind'], type: string, body: object): UpstreamEvent => ({ kind, data: eventData(type, { ...body, p: 'abcdefgh' }) });
  const end = event('rest', 'messageStop', { stopReason: STOP_REASONS[finish] });
  return [
    event('head', 'messageStart', { role: 'assistant' }),
    ...blocksOf(scenario).flatMap(({ start, deltas, kind }, contentBlockIndex) => [
      ...(start === undefined ? [] : [event('rest', 'contentBlockStart', { contentBlockIndex, start })]),
      ...deltas.map((delta) => event(kind, 'contentBlockDelta', { contentBlockIndex, delta })),
      event(kind === 'head' ? 'head' : 'rest', 'contentBlockStop', { contentBlockIndex }),
    ]),
    event('rest', 'somethingNew', { value: 1 }),
    end,
    ...(scenario.isFinishedTwice ? [end] : []),
    ...(usage === 'before-end' ? [event('rest', 'metadata', METADATA)] : []),
  ];
}

function blocksOf({ text = ['Hello ', 'there'], reasoning = [], signature, encrypted, toolCalls = [] }: UpstreamScenario): Streamed[] {
  const signed = signature === undefined ? [] : [{ reasoningContent: { signature } }];
  const thinking = [...reasoning.map((piece) => ({ reasoningContent: { text: piece } })), ...signed];
  return [
    ...(thinking.length === 0 ? [] : [{ deltas: thinking, kind: 'head' as const }]),
    ...(encrypted === undefined ? [] : [{ deltas: [{ reasoningContent: { redactedContent: encrypted } }], kind: 'head' as const }]),
    { deltas: text.map((piece) => ({ text: piece })), kind: 'text' },
    ...toolCalls.map(({ id, name, arguments: pieces }) => ({
      start: { toolUse: { toolUseId: id, name } },
      deltas: pieces.map((input) => ({ toolUse: { input } })),
      kind: 'rest' as const,
    })),
  ];
}

/** A request as the API reads it. */
export function understood(body: unknown): UnderstoodRequest {
  const { system = [], messages, toolConfig, outputConfig } = converseRequest.parse(body);
  const schema = outputConfig?.textFormat?.structure.jsonSchema.schema;
  return {
    instructions: system.flatMap((one) => ('text' in one ? [one.text] : [])),
    turns: messages.map(({ role, content }) => ({
      role,
      texts: content.flatMap((block) => ('text' in block ? [block.text] : [])),
      images: content.flatMap((block) => ('image' in block ? [`data:image/${block.image.format};base64,${block.image.source.bytes}`] : [])),
      calls: content.flatMap((block) => ('toolUse' in block ? [{ id: block.toolUse.toolUseId, name: block.toolUse.name, input: block.toolUse.input }] : [])),
      results: content.flatMap((block) =>
        'toolResult' in block
          ? [{ id: block.toolResult.toolUseId, text: block.toolResult.content.map((one) => ('text' in one ? one.text : '')).join('') }]
          : [],
      ),
      reasoning: content.flatMap((block): { text: string | null; signature: string }[] => {
        if (!('reasoningContent' in block)) return [];
        const { reasoningContent: given } = block;
        return 'reasoningText' in given ? [given.reasoningText] : [{ text: null, signature: given.redactedContent }];
      }),
    })),
    schema: schema === undefined ? null : JSON.parse(schema),
    tools: (toolConfig?.tools ?? []).flatMap((tool) => ('toolSpec' in tool ? [{ name: tool.toolSpec.name, schema: tool.toolSpec.inputSchema.json }] : [])),
  };
}
