import type { UnderstoodRequest, UpstreamScenario } from '../../services/router-worker/providers/conformance/under-test.ts';
import { generateRequest, refusalOf } from './gemini-rules.ts';
import { openLoopbackUpstream, type RecordingUpstream, type UpstreamDialect, type UpstreamEvent } from './loopback-upstream.ts';

/** Google's POST …:streamGenerateContent, which refuses what the API refuses, and has faults on demand. */
export function openGeminiUpstream(): Promise<RecordingUpstream> {
  return openLoopbackUpstream(generateContent);
}

const USAGE = { promptTokenCount: 12, candidatesTokenCount: 4, thoughtsTokenCount: 1, cachedContentTokenCount: 3, totalTokenCount: 17 };
const FINISH_REASONS = { stop: 'STOP', length: 'MAX_TOKENS', tool_calls: 'STOP', content_filter: 'SAFETY' } as const;

/** The API's words by status. */
const WORDS: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
};

/** What the API says for what the suite names by OpenAI's codes. */
const CODES: Readonly<Record<string, { status: number; reason?: string; message?: string }>> = {
  server_error: { status: 500 },
  rate_limit_exceeded: { status: 429 },
  insufficient_quota: { status: 429, reason: 'insufficient_quota' },
  invalid_api_key: { status: 400, reason: 'API_KEY_INVALID' },
  model_not_found: { status: 404 },
  overloaded_error: { status: 503 },
  context_length_exceeded: { status: 400, message: 'The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).' },
  content_policy_violation: { status: 400, reason: 'content_policy_violation' },
  invalid_request_error: { status: 400 },
  timeout: { status: 504 },
};

const generateContent: UpstreamDialect = {
  basePath: '',
  eventsOf,
  endMark: null,
  lateUsage: JSON.stringify({ ...chunkOf([]), candidates: [], usageMetadata: USAGE }),
  wholeAnswer: ({ text = ['Hello ', 'there'], finish = 'stop' }) => ({ ...chunkOf([{ text: text.join('') }], FINISH_REASONS[finish]), usageMetadata: USAGE }),
  refusalBody: ({ status, code, message }) => errorOf(status, code, message ?? `refused with ${status}`),
  refusalOf: (body, path) => {
    const message = refusalOf(body, path);
    return message === null ? null : { status: 400, message };
  },
  errorEvent: (code) => JSON.stringify(errorOf(CODES[code]?.status ?? (Number(code) || 500), String(code), 'the engine broke')),
  malformed: '{"candidates":[{"content":{"parts":[{"te',
};

function errorOf(status: number, code: string | undefined, message: string) {
  const known = code === undefined ? undefined : CODES[code];
  const reason = known === undefined && code !== undefined && !/^\d+$/.test(code) ? code : known?.reason;
  const details = reason === undefined ? [] : [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason, domain: 'googleapis.com' }];
  return { error: { code: status, message: known?.message ?? message, status: WORDS[status] ?? 'UNKNOWN', details } };
}

function chunkOf(parts: readonly object[], finishReason?: string) {
  const candidate = { content: { parts, role: 'model' }, index: 0, ...(finishReason === undefined ? {} : { finishReason }) };
  return { candidates: [candidate], modelVersion: 'loopback-model-2026', responseId: 'loopback' };
}

function eventsOf(scenario: UpstreamScenario): UpstreamEvent[] {
  const { text = ['Hello ', 'there'], reasoning = [], signature, toolCalls = [], finish = 'stop', usage = 'before-end' } = scenario;
  // The arguments as the scenario has them, which parsing would change.
  const withArguments = (json: string) => json.replace(/"args of (\d+)"/g, (_, index) => toolCalls[Number(index)]?.arguments.join('') || '{}');
  const event = (kind: UpstreamEvent['kind'], chunk: object): UpstreamEvent => ({ data: withArguments(JSON.stringify(chunk)), kind });
  const calls = toolCalls.map(({ id, name }, index) => ({
    functionCall: { id, name, args: `args of ${index}` },
    ...(index === 0 && signature !== undefined ? { thoughtSignature: signature } : {}),
  }));
  const end = { ...chunkOf([], FINISH_REASONS[finish]), ...(usage === 'before-end' ? { usageMetadata: USAGE } : {}) };
  const soFar = usage === 'never' ? {} : { usageMetadata: { promptTokenCount: 12, totalTokenCount: 12 } };
  return [
    ...reasoning.map((piece) => event('head', { ...chunkOf([{ text: piece, thought: true }]), ...soFar })),
    ...text.map((piece) => event('text', { ...chunkOf([{ text: piece }]), ...(usage === 'before-end' ? soFar : {}) })),
    ...(calls.length === 0 ? [] : [event('rest', chunkOf(calls))]),
    event('rest', end),
    ...(scenario.isFinishedTwice ? [event('rest', end)] : []),
  ];
}

/** A request as the API reads it. */
export function understood(body: unknown): UnderstoodRequest {
  const { systemInstruction, contents, tools = [], generationConfig } = generateRequest.parse(body);
  const turns: UnderstoodRequest['turns'] = [];
  for (const { role: given, parts } of contents) {
    const role = given === 'model' ? 'assistant' : 'user';
    let turn = turns.at(-1);
    if (turn?.role !== role) {
      turn = { role, texts: [], images: [], calls: [], results: [], reasoning: [] };
      turns.push(turn);
    }
    for (const { text, inlineData, fileData, functionCall, functionResponse, thoughtSignature } of parts) {
      if (text !== undefined) turn.texts.push(text);
      if (inlineData !== undefined) turn.images.push(`data:${inlineData.mimeType};base64,${inlineData.data}`);
      if (fileData !== undefined) turn.images.push(fileData.fileUri);
      if (functionCall !== undefined) turn.calls.push({ id: functionCall.id ?? '', name: functionCall.name, input: functionCall.args });
      if (functionResponse !== undefined) turn.results.push({ id: functionResponse.id ?? '', text: String(functionResponse.response.output) });
      if (thoughtSignature !== undefined) turn.reasoning.push({ text: null, signature: thoughtSignature });
    }
  }
  return {
    instructions: systemInstruction?.parts.map(({ text }) => text ?? '') ?? [],
    turns,
    schema: generationConfig?.responseJsonSchema ?? null,
    tools: tools.flatMap(({ functionDeclarations }) => functionDeclarations.map(({ name, parametersJsonSchema: schema }) => ({ name, schema }))),
  };
}
