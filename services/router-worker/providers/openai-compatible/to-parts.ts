import type { FinishReason, Logprobs } from '#shared/contracts/router/chat-completion.ts';
import type { ProviderPart, ResponseMetadata } from '#shared/contracts/router/provider-part.ts';
import type { SseEvent } from '#shared/http/sse-reader.ts';
import { exactJson, type JsonPath, withExactNumbers } from '../exact-numbers.ts';
import { ErrorEvent } from '../http-stream/error-event.ts';
import type { EventReader } from '../http-stream/parts-of-body.ts';
import { errorIn } from '../http-stream/to-error.ts';
import { newCallId } from '../new-call-id.ts';
import { ArgumentsScanner } from './arguments-scanner.ts';
import { AttachmentReader } from './attachments.ts';
import {
  type UpstreamChunk,
  type UpstreamDelta,
  type UpstreamLogprobs,
  type UpstreamPiece,
  type UpstreamToolCall,
  type UpstreamUsage,
  upstreamChunk,
} from './chunk.ts';
import { isPlainChunk } from './plain-chunk.ts';
import { toUsage } from './to-usage.ts';

/** Some upstreams send objects in place of their JSON. */
const ARGUMENTS: readonly JsonPath[] = ['delta', 'message'].map((choice) => ['choices', null, choice, 'tool_calls', null, 'function', 'arguments']);
const MAX_TOOL_CALLS = 512;
/** Arguments buffered for a call without a name yet. */
const MAX_BUFFERED_CHARS = 1024 * 1024;
const NOT_STARTED = -1;

/** What one entry of `tool_calls` says; null where it says nothing. */
interface Piece {
  index: number | null;
  id: string | null;
  name: string | null;
  text: string;
}

interface OpenToolCall {
  /** Ours; NOT_STARTED until it has a name. */
  index: number;
  upstreamIndex: number | null;
  /** The upstream's; null until it has sent one. Another call may have the same. */
  id: string | null;
  /** Null until the upstream has named the function; earlier arguments are buffered. */
  name: string | null;
  buffered: string;
  /** What has come of the arguments. */
  readonly scanned: ArgumentsScanner;
  /** Its name came again, without arguments, when it had all of its own: the end of this call or the start of another, which its arguments will tell. */
  isNamedAgain: boolean;
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
  readonly #attachments = new AttachmentReader();
  #named = 0;
  #isWhole = false;
  /** Null until a chunk with a choice has come. */
  #metadata: ResponseMetadata | null = null;
  /** Not yet stated with a text: a token that is a part of a character has none. */
  #logprobs: Logprobs | null = null;
  readonly #countsReasoningApart: boolean;

  /** @param countsReasoningApart whether the upstream's `completion_tokens` are without the reasoning tokens */
  constructor(countsReasoningApart = false) {
    this.#countsReasoningApart = countsReasoningApart;
  }

  /** The parts up to the event that breaks the answer. */
  readEvents(events: readonly SseEvent[]): ProviderPart[] {
    const parts: ProviderPart[] = [];
    try {
      for (const { event, data } of events) {
        if (data === '[DONE]') this.ended = true;
        else if (data === '') continue;
        // Some servers name the event, and its data are the error's fields.
        else if (event === 'error') throw new ErrorEvent(errorIn(data) ?? data);
        else this.#readChunk(data, parts);
      }
    } catch (error) {
      this.broken = error;
    }
    return parts;
  }

  /** An unstreamed answer, one JSON body. */
  readWhole(body: string): ProviderPart[] {
    this.#isWhole = true;
    const parts = this.readEvents([{ event: null, data: body }]);
    this.ended = true;
    return parts;
  }

  /** Calls without arguments get `{}`, so that arguments are always JSON. Not with the finish reason: some upstreams send arguments behind it. */
  lastParts(): ProviderPart[] {
    const parts: ProviderPart[] = [];
    for (const { index, name, scanned } of this.#toolCalls) {
      if (name !== null && scanned.isEmpty) parts.push({ type: 'tool-call-delta', index, arguments: '{}' });
    }
    return parts;
  }

  #readChunk(data: string, parts: ProviderPart[]): void {
    const value: unknown = JSON.parse(data);
    this.#read(isPlainChunk(value) ? value : upstreamChunk.parse(withExactNumbers(value, data, ARGUMENTS)), parts);
  }

  #read(chunk: UpstreamChunk, parts: ProviderPart[]): void {
    // We ask for one choice; the first chunk of some upstreams has none.
    const choice = chunk.choices?.find(({ index }) => (index ?? 0) === 0);
    const delta = choice?.delta ?? choice?.message;
    const usage = chunk.usage ?? chunk.x_groq?.usage;
    if (isError(chunk.error)) this.#fail(chunk.error, choice?.finish_reason, usage, parts);
    if (choice !== undefined && (this.#metadata === null || choice.finish_reason || usage)) this.#readMetadata(chunk, parts);
    if (choice?.logprobs) this.#logprobs = joinLogprobs(this.#logprobs, choice.logprobs);
    if (delta) this.#readDelta(delta, parts);
    const nativeReason = choice?.finish_reason;
    if (nativeReason && !this.finished) {
      const reason = toFinishReason(nativeReason);
      if (reason === 'error') this.#fail({ message: `the model stopped with "${nativeReason}"` }, nativeReason, usage, parts);
      this.finished = true;
      parts.push({ type: 'finish', reason, nativeReason });
    }
    if (usage) this.#addUsage(usage, parts);
  }

  /** What its chunk says of the end is stated. @throws ErrorEvent always */
  #fail(error: unknown, nativeReason: string | null | undefined, usage: UpstreamUsage | null | undefined, parts: ProviderPart[]): never {
    if (usage) this.#addUsage(usage, parts);
    if (nativeReason && !this.finished && toFinishReason(nativeReason) === 'error') parts.push({ type: 'finish', reason: 'error', nativeReason });
    throw new ErrorEvent(error);
  }

  #addUsage(usage: UpstreamUsage, parts: ProviderPart[]): void {
    this.hasUsage = true;
    parts.push({ type: 'usage', usage: toUsage(usage, this.#countsReasoningApart) });
  }

  #readDelta(delta: UpstreamDelta, parts: ProviderPart[]): void {
    const before = parts.length;
    const { reasoning_details: details } = delta;
    const isDetailed = details !== undefined && details !== null && this.#attachments.readReasoning(details, parts);
    const reasoning = delta.reasoning || delta.reasoning_content;
    if (reasoning && !isDetailed) parts.push({ type: 'reasoning-delta', text: reasoning });
    if (typeof delta.content === 'string') {
      const { content: text } = delta;
      if (text !== '') parts.push(this.#logprobs === null ? { type: 'text-delta', text } : { type: 'text-delta', text, logprobs: this.#takeLogprobs() });
    } else if (delta.content) {
      for (const piece of delta.content) this.#readPiece(piece, parts);
    }
    if (delta.refusal) {
      const refused = { type: 'refusal-delta' as const, text: delta.refusal };
      parts.push(this.#logprobs === null ? refused : { ...refused, logprobs: this.#takeLogprobs() });
    }
    for (const fragment of delta.tool_calls ?? []) this.#readToolCall(fragment, parts);
    // A vendor may send the call in both forms.
    if (delta.function_call && !delta.tool_calls?.length) this.#readToolCall({ index: 0, function: delta.function_call }, parts);
    if ((delta.annotations ?? delta.images ?? delta.audio ?? null) !== null) this.#readAttachments(delta, parts);
    if (parts.length > before) this.hasContent = true;
  }

  /** Reasoning is a list of texts. */
  #readPiece({ text, thinking }: UpstreamPiece, parts: ProviderPart[]): void {
    for (const { text: reasoning } of thinking ?? []) if (reasoning) parts.push({ type: 'reasoning-delta', text: reasoning });
    if (text) parts.push({ type: 'text-delta', text });
  }

  #takeLogprobs(): Logprobs {
    const taken = this.#logprobs;
    this.#logprobs = null;
    return taken ?? { content: null, refusal: null };
  }

  #readAttachments({ annotations, images, audio }: UpstreamDelta, parts: ProviderPart[]): void {
    this.#attachments.readAnnotations(annotations, parts);
    this.#attachments.readImages(images, parts);
    this.#attachments.readAudio(audio, parts);
  }

  /** Of the first chunk with a choice, and of the last ones: all chunks say the same, but for upstreams that know the tier at the end. */
  #readMetadata({ id, system_fingerprint: fingerprint, service_tier: tier }: UpstreamChunk, parts: ProviderPart[]): void {
    const last = this.#metadata;
    const named = { id: textOrNull(id), systemFingerprint: textOrNull(fingerprint), serviceTier: textOrNull(tier) };
    this.#metadata = named;
    const isNew =
      named.id !== (last?.id ?? null) || named.systemFingerprint !== (last?.systemFingerprint ?? null) || named.serviceTier !== (last?.serviceTier ?? null);
    if (isNew) parts.push({ type: 'response-metadata', ...named });
  }

  #readToolCall({ index, id, function: called }: UpstreamToolCall, parts: ProviderPart[]): void {
    const given = called?.arguments ?? '';
    const text = typeof given === 'string' ? given : exactJson(given);
    const call = this.#callOf({ index: index ?? null, id: id || null, name: called?.name || null, text });
    if (call.name !== null && call.index === NOT_STARTED) {
      call.index = this.#named;
      this.#named += 1;
      parts.push({ type: 'tool-call-start', index: call.index, id: this.#uniqueIdOf(call), name: call.name });
    }
    call.buffered += text;
    call.scanned.add(text);
    if (call.buffered.length > MAX_BUFFERED_CHARS && call.name === null) throw new SyntaxError('the answer holds a tool call without a name');
    if (call.name === null || call.buffered === '') return;
    parts.push({ type: 'tool-call-delta', index: call.index, arguments: call.buffered });
    call.buffered = '';
  }

  /** The call that a piece belongs to, with its id and name; a new one if it begins one, as each does in a whole answer. */
  #callOf(piece: Piece): OpenToolCall {
    const known = this.#isWhole ? undefined : this.#knownCall(piece);
    const name = piece.name ?? (known?.isNamedAgain && piece.text.trim() !== '' ? known.name : null);
    if (known !== undefined && !isAnother(known, { ...piece, name })) {
      known.id ??= piece.id;
      known.isNamedAgain ||= known.name !== null && name !== null && known.scanned.isComplete;
      known.name ??= name;
      return known;
    }
    if (this.#toolCalls.length >= MAX_TOOL_CALLS) throw new SyntaxError(`the answer holds more than ${MAX_TOOL_CALLS} tool calls`);
    const { index: upstreamIndex, id } = piece;
    const call = { index: NOT_STARTED, upstreamIndex, id, name, buffered: '', scanned: new ArgumentsScanner(), isNamedAgain: false };
    this.#toolCalls.push(call);
    return call;
  }

  /** By id and index, else by id, else by index, else the last; but an index that has a call without id and name is that call's. */
  #knownCall({ index, id }: Piece): OpenToolCall | undefined {
    const byIndex = this.#toolCalls.findLast((call) => isAtIndex(call, index));
    if (id === null) return byIndex;
    const byBoth = this.#toolCalls.findLast((call) => call.id === id && isAtIndex(call, index));
    if (byBoth !== undefined || (byIndex?.id === null && byIndex.name === null)) return byBoth ?? byIndex;
    return this.#toolCalls.findLast((call) => call.id === id) ?? byIndex;
  }

  /** Clients match results to calls by it. */
  #uniqueIdOf(call: OpenToolCall): string {
    const { id } = call;
    const isTaken = this.#toolCalls.some((other) => other !== call && other.name !== null && other.id === id);
    return id === null || isTaken ? newCallId() : id;
  }
}

function isAtIndex(call: OpenToolCall, index: number | null): boolean {
  return index === null || call.upstreamIndex === index;
}

/**
 * Whether a piece with a name begins another call. In the API an index is a call, and only its first piece has the name. But some vendors omit the index, use
 * one for all calls, or count pieces with it; some repeat a call's id and name, or send the name in pieces; some give several calls one id. What has come of
 * the arguments tells these apart.
 */
function isAnother(call: OpenToolCall, { index, id, name, text }: Piece): boolean {
  if (name === null || call.name === null) return false;
  const isById = id !== null && call.id === id;
  if (!isById && (id !== null || index === null)) return true;
  const { scanned } = call;
  if (isAtIndex(call, index)) return !scanned.isEmpty && (call.name !== name || !scanned.canContinueWith(text));
  if (call.name !== name || scanned.isComplete || !scanned.canContinueWith(text)) return true;
  // Both without arguments, each under its index: neither continues the other.
  return scanned.isEmpty && text.trim() === '';
}

/** Some vendors put `error: null`, `""` or `{}` into healthy chunks. */
function isError(error: unknown): boolean {
  if (typeof error === 'object' && error !== null) return Object.keys(error).length > 0;
  return typeof error === 'string' ? error !== '' : false;
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

/** Clients require `bytes` and `top_logprobs`, which some vendors omit. */
function joinLogprobs(before: Logprobs | null, { content, refusal }: UpstreamLogprobs): Logprobs | null {
  const complete = (tokens: NonNullable<typeof content>) =>
    tokens.map(({ top_logprobs: top, ...token }) => ({ ...withBytes(token), top_logprobs: (top ?? []).map(withBytes) }));
  if (!content?.length && !refusal?.length) return before;
  return {
    content: content ? [...(before?.content ?? []), ...complete(content)] : (before?.content ?? null),
    refusal: refusal ? [...(before?.refusal ?? []), ...complete(refusal)] : (before?.refusal ?? null),
  };
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
