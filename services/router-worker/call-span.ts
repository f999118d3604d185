import type { RouterCall } from '#bus/messages/router.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { failureOf } from '#shared/errors/switchyard-error.ts';
import { type Answer, finishReasonOf } from '#shared/surfaces/answer.ts';
import { genAi } from '#shared/telemetry/gen-ai.ts';
import { maskUrl } from '#shared/telemetry/redact.ts';
import { contextBelow, spanIdOf } from '#shared/telemetry/trace-context.ts';
import { type Attributes, type ContentCapture, noTracing, type Span, type Tracing } from '#shared/telemetry/tracing.ts';
import type { Attempted } from './call/run-call.ts';
import type { ConfiguredProviders } from './providers/registry.ts';

/** By the provider's slug. */
export type Upstreams = ReadonlyMap<string, { address: string; port: number }>;

export function upstreamsOf(providers: ConfiguredProviders): Upstreams {
  return new Map([...providers].flatMap(([slug, { address }]) => (address === null ? [] : [[slug, address]])));
}

interface Delivery {
  call: RouterCall;
  /** From 1. */
  delivery: number;
  /** Whether an earlier item of the call may have been executed. */
  mayBeSecond: boolean;
}

/** Span of one delivery, with a child per attempt. */
export interface CallSpan {
  attempted(attempt: Attempted): void;
  /** @param errorType a stable code; null when the answer is complete */
  end(errorType: string | null): void;
}

const silentSpan: CallSpan = { attempted() {}, end() {} };

/** Begins `chat {model}`. The id derives from call and delivery, so that a later delivery in any process can link to it. */
export function callSpan(tracing: Tracing, upstreams: Upstreams, { call, delivery, mayBeSecond }: Delivery): CallSpan {
  if (tracing === noTracing) return silentSpan;
  const { callId, request, reply, traceparent: parent } = call;
  const nameOf = (number: number) => `${callId}#${number}`;
  const former = delivery > 1 ? contextBelow(parent, nameOf(delivery - 1)) : mayBeSecond ? contextBelow(parent, nameOf(1)) : null;
  const requestedModel = request.model ?? request.models?.[0];
  const span = tracing.begin(requestedModel === undefined ? 'chat' : `chat ${requestedModel}`, {
    kind: 'client',
    scope: 'switchyard.gen_ai',
    parent,
    // How often an earlier item was delivered is unknown, so a derived id might repeat.
    ...(delivery === 1 && mayBeSecond ? {} : { spanId: spanIdOf(nameOf(delivery)) }),
    links: former === null ? [] : [former],
    attributes: {
      [genAi.operation]: 'chat',
      [genAi.requestModel]: requestedModel,
      [genAi.requestTemperature]: request.temperature ?? undefined,
      [genAi.requestMaxTokens]: request.max_completion_tokens ?? request.max_tokens ?? undefined,
      [genAi.requestStream]: request.stream === true || undefined,
      [genAi.conversation]: reply?.sessionId,
      [genAi.responseId]: callId,
      [genAi.inputMessages]: inputOf(request, tracing.content),
      'switchyard.delivery': delivery,
    },
  });
  let attempts = 0;
  return {
    attempted(attempt) {
      attempts += 1;
      recordAttempt(tracing, upstreams, span, attempt, attempts);
      span.set({ 'switchyard.attempts': attempts, ...answerAttributes(attempt, tracing.content) });
    },
    end: (errorType) => span.end(errorType),
  };
}

function recordAttempt(tracing: Tracing, upstreams: Upstreams, parent: Span, attempt: Attempted, number: number): void {
  const { candidate, startMs, firstMs, endMs, error } = attempt;
  const { provider, endpoint, model } = candidate;
  const upstream = upstreams.get(provider.slug);
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
      'switchyard.time_to_first_part_ms': firstMs === null ? undefined : firstMs - startMs,
      'http.request.method': upstream === undefined ? undefined : 'POST',
      'http.response.status_code': typeof status === 'number' ? status : undefined,
      'server.address': upstream?.address,
      'server.port': upstream?.port,
    },
  });
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

function inputOf({ messages }: ChatRequest, content: ContentCapture): string | undefined {
  if (content === 'off') return undefined;
  const inputMessages = messages.map((message) => ({ role: message.role, parts: partsOf(message, content) }));
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

function outputOf({ text, toolCalls }: Answer, content: ContentCapture): string | undefined {
  if (content === 'off') return undefined;
  const parts: Part[] = text === '' ? [] : [{ type: 'text', content: shown(text, content) }];
  return JSON.stringify([{ role: 'assistant', parts: [...parts, ...toolCalls.flatMap((call) => [toolCall(call, content)])] }]);
}

function toolCall({ id, function: { name, arguments: text } }: { id: string; function: { name: string; arguments: string } }, content: ContentCapture): Part {
  return { type: 'tool_call', id, name, arguments: shown(text, content) };
}

/** Redacted: lengths only. */
function shown(text: string, content: ContentCapture): string {
  return content === 'full' ? maskUrl(text) : `[${text.length} characters]`;
}
