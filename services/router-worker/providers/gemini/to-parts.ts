import type { FinishReason, Logprobs } from '#shared/contracts/router/chat-completion.ts';
import type { ProviderPart, ProviderUsage, ReasoningBlock } from '#shared/contracts/router/provider-part.ts';
import type { SseEvent } from '#shared/http/sse-reader.ts';
import { exactJson, type JsonPath, withExactNumbers } from '../exact-numbers.ts';
import { ErrorEvent } from '../http-stream/error-event.ts';
import type { EventReader } from '../http-stream/parts-of-body.ts';
import { newCallId } from '../new-call-id.ts';
import { type GeminiCandidate, type GeminiChunk, type GeminiPart, type GeminiUsage, geminiChunk, isTextChunk, readUsage } from './chunk.ts';
import { Citations } from './citations.ts';

/** Of reasoning in answers: which dialect reads it when it is sent back. */
export const GEMINI_FORMAT = 'google-gemini-v1';

const ARGUMENTS_PATH: JsonPath = ['candidates', null, 'content', 'parts', null, 'functionCall', 'args'];
/** Of a chunk, and of a list of them. */
const ARGUMENTS: readonly JsonPath[] = [ARGUMENTS_PATH, [null, ...ARGUMENTS_PATH]];

/** Receives the signature of a tool call, which many clients don't send back. */
export type SignatureHandler = (callId: string, signature: string) => void;

/** Turns the events of one answer into parts. The API has no end mark: an answer with a finish reason is complete. */
export class ChunkReader implements EventReader {
  /** A finish reason came: later errors don't matter. */
  finished = false;
  /** A whole body was read. */
  ended = false;
  hasContent = false;
  hasUsage = false;
  /** ErrorEvent, SyntaxError (not JSON) or ZodError (not a chunk). Nothing is read after it. */
  broken: unknown = null;
  readonly #onSignature: SignatureHandler;
  #hasMetadata = false;
  /** Cumulative, in every chunk: the last one counts, and is read when it is needed. */
  #usage: unknown = null;
  #hasUsageSoFar = false;
  #toolCalls = 0;
  #searches = 0;
  readonly #citations: Citations;
  #blocks = 0;
  /** Of the thoughts that may continue. */
  #thoughts: ReasoningBlock | null = null;

  /** @param searchesWeb whether the request lets the upstream search: then the text is kept, for the places of what it cites */
  constructor(onSignature: SignatureHandler, searchesWeb = false) {
    this.#onSignature = onSignature;
    this.#citations = new Citations(searchesWeb);
  }

  /** The parts up to the event that breaks the answer. */
  readEvents(events: readonly SseEvent[]): ProviderPart[] {
    const parts: ProviderPart[] = [];
    try {
      for (const { data } of events) if (data !== '') this.#readData(data, parts);
    } catch (error) {
      this.broken = error;
    }
    return parts;
  }

  /** A JSON body: one chunk, or a list of them. */
  readWhole(body: string): ProviderPart[] {
    const parts: ProviderPart[] = [];
    try {
      const value = withExactNumbers(JSON.parse(body), body, ARGUMENTS);
      for (const chunk of Array.isArray(value) ? value : [value]) this.#readChunk(geminiChunk.parse(chunk), parts);
    } catch (error) {
      this.broken = error;
    }
    this.ended = true;
    return parts;
  }

  #readData(data: string, parts: ProviderPart[]): void {
    const value: unknown = JSON.parse(data);
    if (!this.#hasMetadata || !isTextChunk(value)) {
      this.#readChunk(geminiChunk.parse(withExactNumbers(value, data, ARGUMENTS)), parts);
      return;
    }
    if (value.usageMetadata !== undefined) this.#usage = value.usageMetadata;
    this.#addText({ text: value.candidates[0].content.parts[0].text }, parts);
    this.#addUsageSoFar(parts);
  }

  #readChunk(chunk: GeminiChunk, parts: ProviderPart[]): void {
    if (chunk.error !== undefined && chunk.error !== null) throw new ErrorEvent(chunk.error);
    if (!this.#hasMetadata) {
      this.#hasMetadata = true;
      parts.push({ type: 'response-metadata', id: chunk.responseId ?? null, systemFingerprint: null, serviceTier: null });
    }
    if (chunk.usageMetadata) this.#usage = chunk.usageMetadata;
    // We ask for one candidate.
    const candidate = chunk.candidates?.find(({ index }) => (index ?? 0) === 0);
    const { blockReason, blockReasonMessage } = chunk.promptFeedback ?? {};
    if (candidate === undefined && blockReason) {
      throw new ErrorEvent({ code: 400, status: 'content_policy_violation', message: blockReasonMessage ?? `the prompt was blocked (${blockReason})` });
    }
    if (candidate !== undefined) this.#readCandidate(candidate, parts);
    if (this.finished) this.#addUsage(parts);
    else this.#addUsageSoFar(parts);
  }

  #readCandidate(candidate: GeminiCandidate, parts: ProviderPart[]): void {
    const logprobs = toLogprobs(candidate);
    for (const part of candidate.content?.parts ?? []) this.#readPart(part, logprobs, parts);
    // Each chunk has all queries so far.
    this.#searches = Math.max(this.#searches, candidate.groundingMetadata?.webSearchQueries?.length ?? 0);
    if (candidate.groundingMetadata) this.#citations.read(candidate.groundingMetadata);
    const { finishReason: nativeReason, finishMessage } = candidate;
    if (!nativeReason || this.finished) return;
    const reason = this.#reasonOf(nativeReason);
    if (reason === 'error') {
      this.#addUsage(parts);
      parts.push({ type: 'finish', reason, nativeReason });
      throw new ErrorEvent({ message: finishMessage ?? `the model stopped with "${nativeReason}"` });
    }
    this.finished = true;
    for (const annotation of this.#citations.take()) this.#add({ type: 'annotation', annotation }, parts);
    parts.push({ type: 'finish', reason, nativeReason });
  }

  #readPart(part: GeminiPart, logprobs: Logprobs | null, parts: ProviderPart[]): void {
    const { text, thoughtSignature: signature, functionCall, inlineData } = part;
    if (text && part.thought) this.#addThought(text, parts);
    else if (text) this.#addText(logprobs === null ? { text } : { text, logprobs }, parts);
    let callId: string | null = null;
    if (functionCall) {
      callId = functionCall.id || newCallId();
      this.#thoughts = null;
      this.#add({ type: 'tool-call-start', index: this.#toolCalls, id: callId, name: functionCall.name }, parts);
      this.#add({ type: 'tool-call-delta', index: this.#toolCalls, arguments: exactJson(functionCall.args ?? {}) }, parts);
      this.#toolCalls += 1;
    }
    if (inlineData?.mimeType.startsWith('image/')) this.#add({ type: 'image', url: `data:${inlineData.mimeType};base64,${inlineData.data}` }, parts);
    else if (inlineData) this.#add({ type: 'audio-delta', id: 'audio', data: inlineData.data, transcript: null }, parts);
    if (!signature) return;
    this.#add({ type: 'reasoning-encrypted', data: signature, block: this.#newBlock(callId) }, parts);
    if (callId !== null) this.#onSignature(callId, signature);
  }

  #addThought(text: string, parts: ProviderPart[]): void {
    this.#thoughts ??= this.#newBlock(null);
    this.#add({ type: 'reasoning-delta', text, block: this.#thoughts }, parts);
  }

  #addText(given: { text: string; logprobs?: Logprobs }, parts: ProviderPart[]): void {
    if (given.text === '') return;
    this.#thoughts = null;
    this.hasContent = true;
    this.#citations.addText(given.text);
    parts.push({ type: 'text-delta', ...given });
  }

  #add(part: ProviderPart, parts: ProviderPart[]): void {
    this.hasContent = true;
    parts.push(part);
  }

  #addUsageSoFar(parts: ProviderPart[]): void {
    if (this.#hasUsageSoFar || this.#usage === null) return;
    this.#hasUsageSoFar = true;
    parts.push({ type: 'usage-so-far', read: () => this.#counted() ?? {} });
  }

  #addUsage(parts: ProviderPart[]): void {
    const counted = this.#counted();
    this.#usage = null;
    if (counted === null) return;
    this.hasUsage = true;
    parts.push({ type: 'usage', usage: counted });
  }

  #counted(): ProviderUsage | null {
    const usage = this.#usage === null ? null : readUsage(this.#usage);
    if (usage === null || typeof usage.promptTokenCount !== 'number') return null;
    return { ...toUsage(usage, usage.promptTokenCount), ...(this.#searches > 0 && { webSearches: this.#searches }) };
  }

  #newBlock(id: string | null): ReasoningBlock {
    const block = { index: this.#blocks, id, format: GEMINI_FORMAT };
    this.#blocks += 1;
    return block;
  }

  /** Reasons that are not known say nothing of an empty answer. */
  #reasonOf(native: string): FinishReason {
    switch (native) {
      case 'STOP':
      case 'CONTINUATION':
        return this.#toolCalls > 0 ? 'tool_calls' : 'stop';
      case 'MAX_TOKENS':
        return 'length';
      case 'SAFETY':
      case 'RECITATION':
      case 'BLOCKLIST':
      case 'PROHIBITED_CONTENT':
      case 'SPII':
      case 'IMAGE_SAFETY':
      case 'IMAGE_PROHIBITED_CONTENT':
      case 'IMAGE_RECITATION':
        return 'content_filter';
      case 'MALFORMED_FUNCTION_CALL':
      case 'UNEXPECTED_TOOL_CALL':
      case 'TOO_MANY_TOOL_CALLS':
        return 'error';
      default:
        return this.hasContent ? 'stop' : 'error';
    }
  }
}

function toUsage(usage: GeminiUsage, promptTokenCount: number): ProviderUsage {
  const reasoningTokens = usage.thoughtsTokenCount ?? 0;
  return {
    promptTokens: promptTokenCount + (usage.toolUsePromptTokenCount ?? 0),
    completionTokens: (usage.candidatesTokenCount ?? 0) + reasoningTokens,
    cachedTokens: usage.cachedContentTokenCount ?? 0,
    reasoningTokens,
  };
}

function toLogprobs({ logprobsResult: result }: GeminiCandidate): Logprobs | null {
  if (!result) return null;
  const of = ({ token, logProbability: logprob }: { token: string; logProbability: number }) => ({ token, logprob, bytes: null });
  const content = result.chosenCandidates.map((chosen, index) => ({
    ...of(chosen),
    top_logprobs: (result.topCandidates?.[index]?.candidates ?? []).map(of),
  }));
  return { content, refusal: null };
}
