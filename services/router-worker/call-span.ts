import type { RouterCall } from '#bus/messages/router.ts';
import type { ItemTrace } from '#services/work/item-span.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { failureOf } from '#shared/errors/switchyard-error.ts';
import { type Answer, finishReasonOf } from '#shared/surfaces/answer.ts';
import { genAi } from '#shared/telemetry/gen-ai.ts';
import { maskUrl } from '#shared/telemetry/redact.ts';
import type { Attributes, ContentCapture, Span, Tracing } from '#shared/telemetry/tracing.ts';
import type { Attempted } from './call/attempt.ts';
import type { ConfiguredProviders } from './providers/registry.ts';

/** By the provider's slug. */
export type Upstreams = ReadonlyMap<string, { address: string; port: number }>;

export function upstreamsOf(providers: ConfiguredProviders): Upstreams {
  return new Map([...providers].flatMap(([slug, { address }]) => (address === null ? [] : [[slug, address]])));
}

/** `chat {model}` or `embeddings {model}`, the span of one delivery. */
export function callTrace(
  { callId, request, maxTokens, embedding, reply, step, createdAtMs }: RouterCall,
  { delivery, nowMs }: { delivery: number; nowMs: number },
  content: ContentCapture,
): ItemTrace {
  const requestedModel = request.model ?? request.models?.[0];
  const operation = embedding === undefined ? 'chat' : 'embeddings';
  return {
    name: requestedModel === undefined ? operation : `${operation} ${requestedModel}`,
    kind: 'client',
    scope: 'switchyard.gen_ai',
    attributes: {
      [genAi.operation]: operation,
      [genAi.requestModel]: requestedModel,
      [genAi.requestTemperature]: request.temperature ?? undefined,
      [genAi.requestMaxTokens]: request.max_completion_tokens ?? request.max_tokens ?? maxTokens ?? undefined,
      [genAi.requestStream]: request.stream === true || undefined,
      [genAi.outputType]: outputTypeOf(request),
      [genAi.conversation]: reply?.sessionId,
      [genAi.responseId]: callId,
      [genAi.inputMessages]: inputOf(request, content),
      [genAi.toolDefinitions]: toolsOf(request, content),
      'switchyard.delivery': delivery,
      'switchyard.queue.wait_ms': Math.max(0, nowMs - createdAtMs),
      'switchyard.call.kind': step?.name,
      'switchyard.batch.class': step?.batchClass,
      'switchyard.batch.size': step?.items,
      'switchyard.routine.id': step?.routineId,
      ...callerAttributes(request),
    },
  };
}

/** OpenAI's limits on metadata; more is cut here, and refused nowhere. */
const MAX_METADATA_PAIRS = 16;
const MAX_METADATA_KEY_CHARS = 64;
/** Of one value that a caller chooses. */
const MAX_VALUE_CHARS = 512;
const MAX_TRACE_CHARS = 4_096;

/** How callers group and describe their requests. */
function callerAttributes({ session_id: sessionId, user, metadata = {}, trace }: ChatRequest): Attributes {
  const pairs = Object.entries(metadata).slice(0, MAX_METADATA_PAIRS);
  return {
    'session.id': sessionId,
    'user.id': user?.slice(0, MAX_VALUE_CHARS),
    'switchyard.trace': trace ? JSON.stringify(trace).slice(0, MAX_TRACE_CHARS) : undefined,
    ...Object.fromEntries(pairs.map(([key, value]) => [`switchyard.metadata.${key.slice(0, MAX_METADATA_KEY_CHARS)}`, value.slice(0, MAX_VALUE_CHARS)])),
  };
}

/** Undefined where the request asks for no form. */
function outputTypeOf({ response_format: format, modalities }: ChatRequest): string | undefined {
  if (modalities?.includes('audio')) return 'speech';
  if (modalities?.includes('image')) return 'image';
  if (format === undefined) return undefined;
  return format.type === 'text' ? 'text' : 'json';
}

/** Records the attempts of a call, each as a span below that of its delivery. */
export class CallSpan {
  readonly #span: Span;
  readonly #tracing: Tracing;
  readonly #upstreams: Upstreams;
  /** Whether readers get the parts as they come. */
  readonly #isStreamed: boolean;
  #attempts = 0;

  constructor(span: Span, isStreamed: boolean, { tracing, upstreams }: { tracing: Tracing; upstreams: Upstreams }) {
    this.#span = span;
    this.#tracing = tracing;
    this.#upstreams = upstreams;
    this.#isStreamed = isStreamed;
  }

  attempted(attempt: Attempted): void {
    this.#attempts += 1;
    recordAttempt(this.#tracing, this.#upstreams, this.#span, attempt, this.#attempts);
    this.#span.set({
      'switchyard.attempts': this.#attempts,
      'switchyard.deltas': this.#isStreamed ? attempt.deltas : undefined,
      ...addressOf(this.#upstreams, attempt),
      ...answerAttributes(attempt, this.#tracing.content),
    });
  }
}

function recordAttempt(tracing: Tracing, upstreams: Upstreams, parent: Span, attempt: Attempted, number: number): void {
  const { candidate, startMs, firstMs, endMs, error, hedge, outrun } = attempt;
  const { provider, endpoint, model } = candidate;
  const failure = error === null ? null : failureOf(error);
  const status = failure?.details.status;
  tracing.record({
    name: `upstream ${provider.slug}`,
    kind: 'client',
    parent: parent.traceparent,
    startMs,
    endMs,
    errorType: failure?.code ?? null,
    attributes: {
      'switchyard.provider': provider.slug,
      'switchyard.model': model.id,
      'switchyard.upstream_model': endpoint.upstream_model,
      'switchyard.attempt': number,
      'switchyard.hedge': hedge,
      'switchyard.outrun': outrun,
      'switchyard.time_to_first_part_ms': firstMs === null ? undefined : firstMs - startMs,
      'http.request.method': upstreams.has(provider.slug) ? 'POST' : undefined,
      'http.response.status_code': typeof status === 'number' ? status : undefined,
      ...addressOf(upstreams, attempt),
    },
  });
}

/** Of the provider that was asked. */
function addressOf(upstreams: Upstreams, { candidate }: Attempted): Attributes {
  const upstream = upstreams.get(candidate.provider.slug);
  return { 'server.address': upstream?.address, 'server.port': upstream?.port };
}

function answerAttributes({ candidate, answer, error, startMs, firstMs }: Attempted, content: ContentCapture): Attributes {
  const { usage } = answer;
  return {
    [genAi.provider]: candidate.provider.slug,
    [genAi.responseModel]: candidate.model.id,
    [genAi.firstChunk]: firstMs === null ? undefined : (firstMs - startMs) / 1_000,
    [genAi.finishReasons]: error === null ? [finishReasonOf(answer)] : undefined,
    [genAi.inputTokens]: usage?.promptTokens,
    [genAi.outputTokens]: usage?.completionTokens,
    [genAi.cachedTokens]: usage?.cachedTokens,
    [genAi.reasoningTokens]: usage?.reasoningTokens,
    [genAi.outputMessages]: outputOf(answer, content),
  };
}

type Part =
  | { type: 'text'; content: string }
  | { type: 'tool_call'; id: string | undefined; name: string; arguments: string }
  | { type: 'tool_call_response'; id: string; result: string };

function inputOf(request: ChatRequest, content: ContentCapture): string | undefined {
  if (content === 'off') return undefined;
  const inputMessages = request.messages.map((message) => ({ role: message.role, parts: partsOf(message, content) }));
  return JSON.stringify(inputMessages);
}

function partsOf(message: ChatRequest['messages'][number], content: ContentCapture): Part[] {
  const text =
    typeof message.content === 'string' ? message.content : (message.content ?? []).map((item) => (item.type === 'text' ? item.text : '')).join('\n');
  if (message.role === 'tool') return [{ type: 'tool_call_response', id: message.tool_call_id, result: shown(text, content) }];
  const parts: Part[] = text === '' ? [] : [{ type: 'text', content: shown(text, content) }];
  if (message.role !== 'assistant') return parts;
  return [...parts, ...(message.tool_calls ?? []).map((call) => toolCall(call, content))];
}

/** Names and, in full, descriptions and schemas. */
function toolsOf({ tools }: ChatRequest, content: ContentCapture): string | undefined {
  if (content === 'off' || tools === undefined || tools.length === 0) return undefined;
  const definitions = tools.map(({ type, function: { name, description, parameters } }) => ({
    ...{ type, name },
    ...(content === 'full' && { description, parameters }),
  }));
  return maskUrl(JSON.stringify(definitions));
}

function outputOf(answer: Answer, content: ContentCapture): string | undefined {
  if (content === 'off') return undefined;
  const { text, toolCalls } = answer;
  const parts: Part[] = text === '' ? [] : [{ type: 'text', content: shown(text, content) }];
  const calls = toolCalls.flatMap((call) => [toolCall(call, content)]);
  return JSON.stringify([{ role: 'assistant', parts: [...parts, ...calls], finish_reason: finishReasonOf(answer) }]);
}

function toolCall({ id, function: { name, arguments: text } }: { id: string; function: { name: string; arguments: string } }, content: ContentCapture): Part {
  return { type: 'tool_call', id, name, arguments: shown(text, content) };
}

/** Redacted: lengths only. */
function shown(text: string, content: ContentCapture): string {
  return content === 'full' ? maskUrl(text) : `[${text.length} characters]`;
}
