import type { Logprobs } from '#shared/contracts/router/chat-completion.ts';
import type { ProviderPart, ReasoningBlock } from '#shared/contracts/router/provider-part.ts';
import type { SseEvent } from '#shared/http/sse-reader.ts';
import { ErrorEvent } from '../http-stream/error-event.ts';
import type { EventReader } from '../http-stream/parts-of-body.ts';
import {
  type ApiAnnotation,
  type ApiEvent,
  type ApiItem,
  type ApiLogprobs,
  type ApiResponse,
  type ApiUsage,
  apiResponse,
  isTextDelta,
  readEvent,
} from './event.ts';
import { RESPONSES_FORMAT } from './to-reasoning-items.ts';

/** Items of one answer. */
const MAX_ITEMS = 2_048;

/** What is known of an item between its first event and its last. */
interface OpenItem {
  /** Our number of the tool call; null: it is none. */
  call: number | null;
  hasArguments: boolean;
  block: ReasoningBlock;
}

/** Turns the events of one answer into parts. */
export class ResponseReader implements EventReader {
  /** The final event came: later errors don't matter. */
  finished = false;
  ended = false;
  hasContent = false;
  hasUsage = false;
  /** ErrorEvent, SyntaxError (not JSON) or ZodError (not an event). Nothing is read after it. */
  broken: unknown = null;
  readonly #items = new Map<number, OpenItem>();
  #toolCalls = 0;
  #searches = 0;

  /** The parts up to the event that breaks the answer. */
  readEvents(events: readonly SseEvent[]): ProviderPart[] {
    const parts: ProviderPart[] = [];
    try {
      for (const { data } of events) if (data !== '' && data !== '[DONE]') this.#readData(JSON.parse(data), parts);
    } catch (error) {
      this.broken = error;
    }
    return parts;
  }

  /** An unstreamed answer, one JSON body. */
  readWhole(body: string): ProviderPart[] {
    const parts: ProviderPart[] = [];
    try {
      const value: unknown = JSON.parse(body);
      const response = apiResponse.safeParse(value).data;
      if (response !== undefined) this.#readResponse(response, parts);
      else throw new ErrorEvent(typeof value === 'object' && value !== null && 'error' in value ? value.error : { message: 'it sent no answer' });
    } catch (error) {
      this.broken = error;
    }
    this.ended = true;
    return parts;
  }

  #readResponse(response: ApiResponse, parts: ProviderPart[]): void {
    this.#begin(response, parts);
    for (const [index, item] of (response.output ?? []).entries()) {
      this.#open(index, item, parts);
      for (const { text } of item.summary ?? []) this.#addSummary(index, text, parts);
      for (const { text, refusal, annotations } of item.content ?? []) {
        if (item.type === 'reasoning') continue;
        this.#addText(text ?? '', null, parts);
        if (refusal) this.#add({ type: 'refusal-delta', text: refusal }, parts);
        for (const annotation of annotations ?? []) this.#annotate(annotation, parts);
      }
      this.#close(index, item, parts);
    }
    this.#finish(response, parts);
  }

  #readData(value: unknown, parts: ProviderPart[]): void {
    if (isTextDelta(value)) {
      this.#addText(value.delta, null, parts);
      return;
    }
    const event = readEvent(value);
    if (event !== null) this.#readEvent(event, parts);
  }

  #readEvent(event: ApiEvent, parts: ProviderPart[]): void {
    switch (event.type) {
      case 'response.created':
        this.#begin(event.response, parts);
        return;
      case 'response.output_item.added':
        this.#open(event.output_index, event.item, parts);
        return;
      case 'response.output_item.done':
        this.#close(event.output_index, event.item, parts);
        return;
      case 'response.output_text.delta':
        this.#addText(event.delta, toLogprobs(event.logprobs), parts);
        return;
      case 'response.output_text.annotation.added':
        this.#annotate(event.annotation, parts);
        return;
      case 'response.refusal.delta':
        if (event.delta !== '') this.#add({ type: 'refusal-delta', text: event.delta }, parts);
        return;
      case 'response.function_call_arguments.delta':
        this.#addArguments(this.#items.get(event.output_index), event.delta, parts);
        return;
      case 'response.reasoning_summary_part.added':
        if (event.summary_index > 0) this.#addSummary(event.output_index, '\n\n', parts);
        return;
      case 'response.reasoning_summary_text.delta':
        this.#addSummary(event.output_index, event.delta, parts);
        return;
      case 'response.reasoning_text.delta':
        if (event.delta !== '') this.#add({ type: 'reasoning-delta', text: event.delta, block: this.#itemAt(event.output_index, null).block }, parts);
        return;
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed':
        this.#finish(event.response, parts);
        return;
      case 'error':
        throw new ErrorEvent(errorIn(event));
    }
  }

  #begin({ id, service_tier: tier }: ApiResponse, parts: ProviderPart[]): void {
    parts.push({ type: 'response-metadata', id: id ?? null, systemFingerprint: null, serviceTier: tier ?? null });
  }

  #itemAt(index: number, id: string | null): OpenItem {
    const known = this.#items.get(index);
    if (known !== undefined) return known;
    if (this.#items.size >= MAX_ITEMS) throw new SyntaxError(`the answer has more than ${MAX_ITEMS} items`);
    const item = { call: null, hasArguments: false, block: { index, id, format: RESPONSES_FORMAT } };
    this.#items.set(index, item);
    return item;
  }

  #open(index: number, { type, id, call_id: callId, name }: ApiItem, parts: ProviderPart[]): void {
    const item = this.#itemAt(index, id ?? null);
    if (type !== 'function_call' || item.call !== null) return;
    if (!callId || !name) throw new SyntaxError('the answer has a tool call without an id or a name');
    item.call = this.#toolCalls;
    this.#toolCalls += 1;
    this.#add({ type: 'tool-call-start', index: item.call, id: callId, name }, parts);
  }

  /** A finished item is complete: what did not come in pieces is in it. */
  #close(index: number, item: ApiItem, parts: ProviderPart[]): void {
    this.#open(index, item, parts);
    const open = this.#itemAt(index, item.id ?? null);
    // The model may also open a page that it has found, which is no search.
    if (item.type === 'web_search_call' && (item.action?.type ?? 'search') === 'search') this.#countSearch(parts);
    if (item.type === 'function_call' && !open.hasArguments) this.#addArguments(open, item.arguments || '{}', parts);
    if (item.type === 'reasoning' && item.encrypted_content) this.#add({ type: 'reasoning-encrypted', data: item.encrypted_content, block: open.block }, parts);
  }

  #countSearch(parts: ProviderPart[]): void {
    if (this.#searches === 0) parts.push({ type: 'usage-so-far', read: () => ({ webSearches: this.#searches }) });
    this.#searches += 1;
  }

  #addArguments(item: OpenItem | undefined, text: string, parts: ProviderPart[]): void {
    if (item === undefined || item.call === null || text === '') return;
    item.hasArguments = true;
    this.#add({ type: 'tool-call-delta', index: item.call, arguments: text }, parts);
  }

  #addSummary(index: number, text: string, parts: ProviderPart[]): void {
    if (text !== '') this.#add({ type: 'reasoning-summary-delta', text, block: this.#itemAt(index, null).block }, parts);
  }

  #finish(response: ApiResponse, parts: ProviderPart[]): void {
    const { status, error, incomplete_details: details } = response;
    if (status === 'failed' || status === 'cancelled') {
      this.#addUsage(response, parts);
      if (!this.finished) parts.push({ type: 'finish', reason: 'error', nativeReason: status });
      throw new ErrorEvent(error ?? { message: `the answer is ${status}` });
    }
    this.ended = true;
    const native = details?.reason ?? status ?? 'completed';
    if (!this.finished) {
      this.finished = true;
      parts.push({ type: 'finish', reason: this.#reasonOf(status ?? null, details?.reason ?? null), nativeReason: native });
    }
    this.#addUsage(response, parts);
  }

  #addUsage({ usage }: ApiResponse, parts: ProviderPart[]): void {
    if (!usage) return;
    this.hasUsage = true;
    parts.push({ type: 'usage', usage: { ...toUsage(usage), ...(this.#searches > 0 && { webSearches: this.#searches }) } });
  }

  #reasonOf(status: string | null, reason: string | null) {
    if (status === 'incomplete') return reason === 'content_filter' ? 'content_filter' : 'length';
    return this.#toolCalls > 0 ? 'tool_calls' : 'stop';
  }

  #annotate({ type, url, title, start_index: start, end_index: end }: ApiAnnotation, parts: ProviderPart[]): void {
    if (type !== 'url_citation' || !url) return;
    const range = typeof start === 'number' && typeof end === 'number' ? { start_index: start, end_index: end } : {};
    this.#add({ type: 'annotation', annotation: { type: 'url_citation', url_citation: { url, title: title ?? url, ...range } } }, parts);
  }

  #addText(text: string, logprobs: Logprobs | null, parts: ProviderPart[]): void {
    if (text !== '') this.#add(logprobs === null ? { type: 'text-delta', text } : { type: 'text-delta', text, logprobs }, parts);
  }

  #add(part: ProviderPart, parts: ProviderPart[]): void {
    this.hasContent = true;
    parts.push(part);
  }
}

/** The event of an error has its fields at the top, or below `error`. */
function errorIn(event: Record<string, unknown>): unknown {
  const { type: _, error, ...fields } = event;
  return typeof error === 'object' && error !== null ? error : fields;
}

function toUsage(usage: NonNullable<ApiUsage>) {
  return {
    promptTokens: usage.input_tokens,
    completionTokens: usage.output_tokens,
    cachedTokens: usage.input_tokens_details?.cached_tokens ?? 0,
    reasoningTokens: usage.output_tokens_details?.reasoning_tokens ?? 0,
  };
}

function toLogprobs(given: ApiLogprobs): Logprobs | null {
  if (!given || given.length === 0) return null;
  const content = given.map(({ token, logprob, bytes, top_logprobs: top }) => ({
    token,
    logprob,
    bytes: bytes ?? null,
    top_logprobs: (top ?? []).map((one) => ({ token: one.token ?? '', logprob: one.logprob ?? 0, bytes: one.bytes ?? null })),
  }));
  return { content, refusal: null };
}
