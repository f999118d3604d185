import { randomInt } from 'node:crypto';
import type { FinishReason, Logprobs } from '#shared/contracts/router/chat-completion.ts';
import type { ProviderPart, ProviderUsage } from '#shared/contracts/router/provider-part.ts';
import type { SseEvent } from '#shared/http/sse-reader.ts';
import { ErrorEvent } from '../http-stream/error-event.ts';
import type { EventReader } from '../http-stream/parts-of-body.ts';
import { type UpstreamChunk, type UpstreamDelta, type UpstreamLogprobs, type UpstreamToolCall, type UpstreamUsage, upstreamChunk } from './chunk.ts';
import { isPlainChunk } from './plain-chunk.ts';

const MAX_TOOL_CALLS = 512;
/** Arguments buffered for a call without a name yet. */
const MAX_BUFFERED_CHARS = 1024 * 1024;
const CALL_ID_LENGTH = 24;
const ALPHANUMERIC = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

interface OpenToolCall {
  index: number;
  upstreamIndex: number | null;
  id: string | null;
  /** Null until the upstream has named the function; earlier arguments are buffered. */
  name: string | null;
  buffered: string;
  hasArguments: boolean;
}

/** Turns the events of one answer into parts. */
export class PartReader implements EventReader {
  /** A finish reason came: later errors don't matter. */
  finished = false;
  /** `[DONE]` came. */
  ended = false;
  hasContent = false;
  hasUsage = false;
  /** ErrorEvent, SyntaxError (not JSON) or ZodError (not a chunk). Nothing is read after it. */
  broken: unknown = null;
  readonly #toolCalls: OpenToolCall[] = [];
  #named = 0;

  /** The parts up to the event that breaks the answer. */
  readEvents(events: readonly SseEvent[]): ProviderPart[] {
    const parts: ProviderPart[] = [];
    try {
      for (const { data } of events) {
        if (data === '[DONE]') this.ended = true;
        else if (data !== '') this.#readChunk(data, parts);
      }
    } catch (error) {
      this.broken = error;
    }
    return parts;
  }

  /** An unstreamed answer, one JSON body. */
  readWhole(body: string): ProviderPart[] {
    const parts = this.readEvents([{ event: null, data: body }]);
    this.ended = true;
    return parts;
  }

  #readChunk(data: string, parts: ProviderPart[]): void {
    const value: unknown = JSON.parse(data);
    this.#read(isPlainChunk(value) ? value : upstreamChunk.parse(value), parts);
  }

  #read(chunk: UpstreamChunk, parts: ProviderPart[]): void {
    if (isError(chunk.error)) throw new ErrorEvent(chunk.error);
    // We ask for one choice; the first chunk of some upstreams has none.
    const choice = chunk.choices?.find(({ index }) => (index ?? 0) === 0);
    const delta = choice?.delta ?? choice?.message;
    if (delta) this.#readDelta(delta, choice?.logprobs ? toLogprobs(choice.logprobs) : null, parts);
    const nativeReason = choice?.finish_reason;
    if (nativeReason && !this.finished) {
      const reason = toFinishReason(nativeReason);
      if (reason === 'error') throw new ErrorEvent({ message: `the model stopped with "${nativeReason}"` });
      this.#closeToolCalls(parts);
      this.finished = true;
      parts.push({ type: 'finish', reason, nativeReason });
    }
    const usage = chunk.usage ?? chunk.x_groq?.usage;
    if (usage) {
      this.hasUsage = true;
      parts.push({ type: 'usage', usage: toUsage(usage) });
    }
  }

  #readDelta(delta: UpstreamDelta, logprobs: Logprobs | null, parts: ProviderPart[]): void {
    const before = parts.length;
    const reasoning = delta.reasoning || delta.reasoning_content;
    if (reasoning) parts.push({ type: 'reasoning-delta', text: reasoning });
    if (typeof delta.content === 'string') {
      if (delta.content !== '') parts.push(logprobs ? { type: 'text-delta', text: delta.content, logprobs } : { type: 'text-delta', text: delta.content });
    } else if (delta.content) {
      for (const { text } of delta.content) if (text) parts.push({ type: 'text-delta', text });
    }
    if (delta.refusal) parts.push({ type: 'refusal-delta', text: delta.refusal });
    for (const fragment of delta.tool_calls ?? []) this.#readToolCall(fragment, parts);
    if (delta.function_call) this.#readToolCall({ index: 0, function: delta.function_call }, parts);
    if (parts.length > before) this.hasContent = true;
  }

  #readToolCall({ index, id, function: called }: UpstreamToolCall, parts: ProviderPart[]): void {
    const call = this.#callOf(index ?? null, id || null, called?.name || null);
    if (call.name === null && called?.name) {
      call.name = called.name;
      call.index = this.#named;
      this.#named += 1;
      parts.push({ type: 'tool-call-start', index: call.index, id: call.id ?? newCallId(), name: call.name });
    }
    const given = called?.arguments ?? '';
    call.buffered += typeof given === 'string' ? given : JSON.stringify(given);
    if (call.buffered.length > MAX_BUFFERED_CHARS && call.name === null) throw new SyntaxError('the answer holds a tool call without a name');
    if (call.name === null || call.buffered === '') return;
    parts.push({ type: 'tool-call-delta', index: call.index, arguments: call.buffered });
    call.hasArguments = true;
    call.buffered = '';
  }

  /**
   * The call that a fragment belongs to: by index, but some vendors omit it or use one index for all. Then a new id beside a name begins a new call, and a
   * fragment without either continues the last.
   */
  #callOf(upstreamIndex: number | null, id: string | null, name: string | null): OpenToolCall {
    const known = upstreamIndex === null ? this.#toolCalls.at(-1) : this.#toolCalls.findLast((call) => call.upstreamIndex === upstreamIndex);
    const byId = id === null ? undefined : this.#toolCalls.find((call) => call.id === id);
    if (byId !== undefined) return byId;
    const begins = known === undefined || (name !== null && known.name !== null && (id === null ? upstreamIndex === null : known.id !== id));
    if (!begins) {
      known.id ??= id;
      return known;
    }
    if (this.#toolCalls.length >= MAX_TOOL_CALLS) throw new SyntaxError(`the answer holds more than ${MAX_TOOL_CALLS} tool calls`);
    const call = { index: 0, upstreamIndex, id, name: null, buffered: '', hasArguments: false };
    this.#toolCalls.push(call);
    return call;
  }

  /** Calls without arguments get `{}`, so that arguments are always JSON. */
  #closeToolCalls(parts: ProviderPart[]): void {
    for (const call of this.#toolCalls) {
      if (call.name !== null && !call.hasArguments) parts.push({ type: 'tool-call-delta', index: call.index, arguments: '{}' });
    }
  }
}

/** Some vendors put `error: null`, `""` or `{}` into healthy chunks. */
function isError(error: unknown): boolean {
  if (typeof error === 'object' && error !== null) return Object.keys(error).length > 0;
  return typeof error === 'string' ? error !== '' : false;
}

function toUsage(usage: UpstreamUsage): ProviderUsage {
  return {
    promptTokens: usage.prompt_tokens,
    completionTokens: usage.completion_tokens ?? 0,
    cachedTokens: usage.prompt_tokens_details?.cached_tokens ?? usage.prompt_cache_hit_tokens ?? 0,
    reasoningTokens: usage.completion_tokens_details?.reasoning_tokens ?? 0,
  };
}

/** Clients require `bytes` and `top_logprobs`, which some vendors omit. */
function toLogprobs({ content, refusal }: UpstreamLogprobs): Logprobs | null {
  const complete = (tokens: NonNullable<typeof content>) =>
    tokens.map(({ top_logprobs: top, ...token }) => ({ ...withBytes(token), top_logprobs: (top ?? []).map(withBytes) }));
  if (!content?.length && !refusal?.length) return null;
  return { content: content ? complete(content) : null, refusal: refusal ? complete(refusal) : null };
}

function withBytes({ token, logprob, bytes }: { token: string; logprob: number; bytes?: number[] | null | undefined }) {
  return { token, logprob, bytes: bytes ?? null };
}

/** Unknown reasons become `stop`. */
function toFinishReason(native: string): FinishReason {
  switch (native.toLowerCase()) {
    case 'tool_calls':
    case 'tool_use':
    case 'tool_call':
    case 'function_call':
      return 'tool_calls';
    case 'length':
    case 'max_tokens':
    case 'model_length':
      return 'length';
    case 'content_filter':
    case 'safety':
    case 'sensitive':
    case 'refusal':
      return 'content_filter';
    case 'error':
    case 'insufficient_system_resource':
      return 'error';
    default:
      return 'stop';
  }
}

function newCallId(): string {
  let id = 'call_';
  for (let index = 0; index < CALL_ID_LENGTH; index += 1) id += ALPHANUMERIC[randomInt(ALPHANUMERIC.length)];
  return id;
}
