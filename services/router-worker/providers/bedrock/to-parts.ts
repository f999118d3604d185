import type { FinishReason } from '#shared/contracts/router/chat-completion.ts';
import type { ProviderPart, ProviderUsage, ReasoningBlock } from '#shared/contracts/router/provider-part.ts';
import { ANTHROPIC_FORMAT } from '../anthropic/to-thinking-blocks.ts';
import { exactJson, type JsonPath, withExactNumbers } from '../exact-numbers.ts';
import { ErrorEvent } from '../http-stream/error-event.ts';
import type { AnswerProgress } from '../http-stream.ts';
import {
  type AnswerBlock,
  type ApiUsage,
  type BlockDelta,
  blockDelta,
  blockStart,
  blockStop,
  converseAnswer,
  isTextDelta,
  type Metadata,
  messageStop,
  metadata,
} from './event.ts';
import { type Frame, FrameReader } from './frames.ts';

/** Reasoning of models that don't sign it: nothing takes it back. */
const UNSIGNED_FORMAT = 'unknown';
/** Of a whole answer. */
const INPUTS: readonly JsonPath[] = [['output', 'message', 'content', null, 'toolUse', 'input']];
/** Tool calls and reasoning of one answer. */
const MAX_BLOCKS = 2_048;
/** Of one block of redacted reasoning, as base64: it is retained until it is complete. */
const MAX_REDACTED_CHARS = 1024 * 1024;

/** What is known of a block between its first part and its stop; `answer`: a tool call whose arguments are the answer. */
type OpenBlock =
  | { kind: 'tool'; index: number; hasArguments: boolean }
  | { kind: 'answer'; hasArguments: boolean }
  /** `redacted`: pieces of bytes, which are one datum. */
  | { kind: 'reasoning'; block: ReasoningBlock; redacted: Buffer[]; redactedChars: number };

export interface ReaderOptions {
  /** The tool whose arguments are the answer's text; null: none. */
  answerTool: string | null;
  /** Whether the model signs its reasoning as Claude does. */
  signsReasoning: boolean;
}

/** Turns the frames of one answer into parts. */
export class ConverseReader implements AnswerProgress {
  /** `messageStop` came: later errors don't matter. */
  finished = false;
  /** `metadata` came, the last event. */
  ended = false;
  hasContent = false;
  hasUsage = false;
  /** ErrorEvent, SyntaxError (a damaged frame, or not JSON) or ZodError (not an event). Nothing is read after it. */
  broken: unknown = null;
  readonly #options: ReaderOptions;
  readonly #frames = new FrameReader();
  readonly #blocks = new Map<number, OpenBlock>();
  #opened = 0;
  #toolCalls = 0;

  constructor(options: ReaderOptions) {
    this.#options = options;
  }

  /** The parts up to the frame that breaks the answer; null marks the end of the body. */
  readPiece(piece: Buffer | null): ProviderPart[] {
    const parts: ProviderPart[] = [];
    try {
      if (piece !== null) this.#frames.read(piece, (frame) => this.#readFrame(frame, parts));
      else if (this.#frames.isCut) throw new SyntaxError('the answer ends within a frame');
    } catch (error) {
      this.broken = error;
    }
    return parts;
  }

  /** An unstreamed answer, one JSON body. */
  readWhole(body: string): ProviderPart[] {
    const parts: ProviderPart[] = [];
    try {
      const { output, stopReason, ...rest } = converseAnswer.parse(withExactNumbers(JSON.parse(body), body, INPUTS));
      for (const [index, block] of output.message.content.entries()) {
        this.#readBlock(index, block, parts);
        this.#close(index, parts);
      }
      this.#finish(stopReason, parts);
      this.#end(rest, parts);
    } catch (error) {
      this.broken = error;
    }
    this.ended = true;
    return parts;
  }

  #readFrame({ headers, text }: Frame, parts: ProviderPart[]): void {
    switch (headers.get(':message-type')) {
      case 'event':
        this.#readEvent(headers.get(':event-type') ?? '', text, parts);
        return;
      case 'exception':
        throw new ErrorEvent({ ...fieldsOf(text), __type: headers.get(':exception-type') ?? null });
      case 'error':
        throw new ErrorEvent({ message: headers.get(':error-message') ?? null, __type: headers.get(':error-code') ?? null });
      default:
        throw new SyntaxError('a frame without a type that is known');
    }
  }

  #readEvent(type: string, text: string, parts: ProviderPart[]): void {
    switch (type) {
      case 'contentBlockDelta': {
        const value: unknown = JSON.parse(text);
        if (isTextDelta(value)) this.#addText(value.delta.text, parts);
        else this.#readDelta(blockDelta.parse(value), parts);
        return;
      }
      case 'contentBlockStart': {
        const { contentBlockIndex: index, start } = blockStart.parse(JSON.parse(text));
        if (start?.toolUse) this.#openTool(index, start.toolUse, parts);
        return;
      }
      case 'contentBlockStop':
        this.#close(blockStop.parse(JSON.parse(text)).contentBlockIndex, parts);
        return;
      case 'messageStop':
        this.#finish(messageStop.parse(JSON.parse(text)).stopReason, parts);
        return;
      case 'metadata':
        this.#end(metadata.parse(JSON.parse(text)), parts);
    }
  }

  #readDelta({ contentBlockIndex: index, delta: { text, toolUse, reasoningContent } }: BlockDelta, parts: ProviderPart[]): void {
    if (text) this.#addText(text, parts);
    if (toolUse) this.#addArguments(index, toolUse.input, parts);
    if (reasoningContent) this.#addReasoning(index, reasoningContent, parts);
  }

  #readBlock(index: number, { text, toolUse, reasoningContent }: AnswerBlock, parts: ProviderPart[]): void {
    if (text) this.#addText(text, parts);
    if (reasoningContent) {
      this.#addReasoning(index, { ...reasoningContent.reasoningText, redactedContent: reasoningContent.redactedContent }, parts);
    }
    if (!toolUse) return;
    this.#openTool(index, toolUse, parts);
    this.#addArguments(index, exactJson(toolUse.input ?? {}), parts);
  }

  #openTool(index: number, { toolUseId: id, name }: { toolUseId: string; name: string }, parts: ProviderPart[]): void {
    if (name === this.#options.answerTool) {
      this.#open(index, { kind: 'answer', hasArguments: false });
      return;
    }
    this.#open(index, { kind: 'tool', index: this.#toolCalls, hasArguments: false });
    this.#add({ type: 'tool-call-start', index: this.#toolCalls, id, name }, parts);
    this.#toolCalls += 1;
  }

  #open<Open extends OpenBlock>(index: number, open: Open): Open {
    this.#opened += 1;
    if (this.#opened > MAX_BLOCKS) throw new SyntaxError(`the answer has more than ${MAX_BLOCKS} blocks`);
    this.#blocks.set(index, open);
    return open;
  }

  #addArguments(index: number, text: string, parts: ProviderPart[]): void {
    const open = this.#blocks.get(index);
    if (text === '' || open === undefined || open.kind === 'reasoning') return;
    open.hasArguments = true;
    if (open.kind === 'answer') this.#addText(text, parts);
    else this.#add({ type: 'tool-call-delta', index: open.index, arguments: text }, parts);
  }

  #addReasoning(index: number, { text, signature, redactedContent: data }: NonNullable<BlockDelta['delta']['reasoningContent']>, parts: ProviderPart[]): void {
    if (!text && !signature && !data) return;
    const known = this.#blocks.get(index);
    const open = known?.kind === 'reasoning' ? known : this.#open(index, { kind: 'reasoning', block: this.#newBlock(index), redacted: [], redactedChars: 0 });
    const { block, redacted } = open;
    if (text) this.#add({ type: 'reasoning-delta', text, block }, parts);
    if (signature) this.#add({ type: 'reasoning-signature', signature, block }, parts);
    if (!data) return;
    open.redactedChars += data.length;
    if (open.redactedChars > MAX_REDACTED_CHARS) throw new SyntaxError(`a block has more than ${MAX_REDACTED_CHARS} characters of redacted reasoning`);
    redacted.push(Buffer.from(data, 'base64'));
    if (redacted.length > MAX_BLOCKS) throw new SyntaxError(`a block has more than ${MAX_BLOCKS} pieces of redacted reasoning`);
  }

  /** Redacted reasoning is complete; a call without arguments comes without any delta. */
  #close(index: number, parts: ProviderPart[]): void {
    const open = this.#blocks.get(index);
    if (open === undefined) return;
    if (open.kind === 'reasoning') {
      if (open.redacted.length > 0) this.#add({ type: 'reasoning-encrypted', data: Buffer.concat(open.redacted).toString('base64'), block: open.block }, parts);
    } else if (!open.hasArguments) this.#addArguments(index, '{}', parts);
    this.#blocks.delete(index);
  }

  #finish(nativeReason: string, parts: ProviderPart[]): void {
    if (this.finished) return;
    for (const index of [...this.#blocks.keys()]) this.#close(index, parts);
    const reason = this.#reasonOf(nativeReason);
    parts.push({ type: 'finish', reason, nativeReason });
    if (reason === 'error') throw new ErrorEvent({ message: `the model stopped with "${nativeReason}"`, __type: 'ModelErrorException' });
    this.finished = true;
  }

  #end({ usage, serviceTier }: Metadata, parts: ProviderPart[]): void {
    this.ended = true;
    if (serviceTier) parts.push({ type: 'response-metadata', id: null, systemFingerprint: null, serviceTier: serviceTier.type });
    const counted = usage ? toUsage(usage) : null;
    if (counted === null) return;
    this.hasUsage = true;
    parts.push({ type: 'usage', usage: counted });
  }

  #addText(text: string, parts: ProviderPart[]): void {
    if (text === '') return;
    this.hasContent = true;
    parts.push({ type: 'text-delta', text });
  }

  #add(part: ProviderPart, parts: ProviderPart[]): void {
    this.hasContent = true;
    parts.push(part);
  }

  /** Numbered as in the upstream's answer, where texts and calls count, too. */
  #newBlock(index: number): ReasoningBlock {
    return { index, id: null, format: this.#options.signsReasoning ? ANTHROPIC_FORMAT : UNSIGNED_FORMAT };
  }

  /** Unknown reasons become `stop`. */
  #reasonOf(native: string): FinishReason {
    switch (native) {
      case 'max_tokens':
      case 'model_context_window_exceeded':
        return 'length';
      case 'guardrail_intervened':
      case 'content_filtered':
        return 'content_filter';
      case 'malformed_model_output':
      case 'malformed_tool_use':
        return 'error';
      default:
        return this.#toolCalls > 0 ? 'tool_calls' : 'stop';
    }
  }
}

/** `inputTokens` lacks those that were read from and written to the cache. Null: the counts of the answer are missing. */
function toUsage({ inputTokens, outputTokens, cacheReadInputTokens, cacheWriteInputTokens, cacheDetails }: ApiUsage): ProviderUsage | null {
  if (typeof inputTokens !== 'number' || typeof outputTokens !== 'number') return null;
  const cachedTokens = cacheReadInputTokens ?? 0;
  const cacheWriteTokens = cacheWriteInputTokens ?? 0;
  const keptForAnHour = (cacheDetails ?? []).reduce((sum, { ttl, inputTokens: tokens }) => sum + (ttl === '1h' ? (tokens ?? 0) : 0), 0);
  return {
    promptTokens: inputTokens + cachedTokens + cacheWriteTokens,
    completionTokens: outputTokens,
    cachedTokens,
    cacheWriteTokens,
    ...(keptForAnHour > 0 && { cacheWrite1hTokens: Math.min(keptForAnHour, cacheWriteTokens) }),
    reasoningTokens: 0,
  };
}

function fieldsOf(text: string): object {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : { message: text };
  } catch {
    return { message: text };
  }
}
