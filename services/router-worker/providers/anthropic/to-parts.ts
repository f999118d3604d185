import type { FinishReason } from '#shared/contracts/router/chat-completion.ts';
import type { ProviderPart, ReasoningBlock } from '#shared/contracts/router/provider-part.ts';
import type { SseEvent } from '#shared/http/sse-reader.ts';
import { exactJson, type JsonPath, withExactNumbers } from '../exact-numbers.ts';
import { ErrorEvent } from '../http-stream/error-event.ts';
import type { EventReader } from '../http-stream/parts-of-body.ts';
import {
  type ApiBlock,
  type ApiDelta,
  type ApiEvent,
  type ApiHead,
  type ApiMessage,
  type ApiStop,
  type ApiUsage,
  apiMessage,
  isTextDelta,
  readEvent,
} from './event.ts';
import { toAnnotation } from './to-annotation.ts';
import { ANTHROPIC_FORMAT } from './to-thinking-blocks.ts';
import { UsageReader } from './usage-reader.ts';

/** Of a block that starts, and of a whole answer. */
const INPUTS: readonly JsonPath[] = [
  ['content_block', 'input'],
  ['content', null, 'input'],
];
/** Tool calls, thinking and texts of one answer. */
const MAX_BLOCKS = 2_048;
/** Of one block of text. */
const MAX_CITATIONS = 256;
/** Arguments of one tool that the upstream runs itself, which are held until they are complete. */
const MAX_HELD_CHARS = 1024 * 1024;

/** What is known of a block between its start and its stop. */
type OpenBlock =
  | { kind: 'tool'; index: number; input: object; hasArguments: boolean }
  /** Its arguments are the answer. */
  | { kind: 'answer'; input: object; hasArguments: boolean }
  | { kind: 'server-tool'; id: string; name: string; input: object; text: string }
  | { kind: 'thinking'; block: ReasoningBlock }
  /** Its citations come before its text. */
  | { kind: 'text'; start: number; citations: unknown[] };

/** Turns the events of one answer into parts. */
export class MessageReader implements EventReader {
  /** A stop reason came: later errors don't matter. */
  finished = false;
  /** `message_stop` came. */
  ended = false;
  hasContent = false;
  hasUsage = false;
  /** ErrorEvent, SyntaxError (not JSON) or ZodError (not an event). Nothing is read after it. */
  broken: unknown = null;
  readonly #answerTool: string | null;
  readonly #blocks = new Map<number, OpenBlock>();
  readonly #usage = new UsageReader();
  /** By the id of the call. */
  readonly #serverTools = new Map<string, string>();
  #toolCalls = 0;
  #textChars = 0;

  /** @param answerTool the tool whose arguments are the answer's text; null: none */
  constructor(answerTool: string | null) {
    this.#answerTool = answerTool;
  }

  /** The parts up to the event that breaks the answer. */
  readEvents(events: readonly SseEvent[]): ProviderPart[] {
    const parts: ProviderPart[] = [];
    try {
      for (const { data } of events) {
        if (data !== '') this.#readData(JSON.parse(data), data, parts);
      }
    } catch (error) {
      this.broken = error;
    }
    return parts;
  }

  /** An unstreamed answer, one JSON body. */
  readWhole(body: string): ProviderPart[] {
    const parts: ProviderPart[] = [];
    try {
      const value = withExactNumbers(JSON.parse(body), body, INPUTS);
      const message = apiMessage.safeParse(value).data;
      // An error, or no answer at all.
      if (message === undefined) this.#readData(value, body, parts);
      else this.#readMessage(message, parts);
    } catch (error) {
      this.broken = error;
    }
    this.ended = true;
    return parts;
  }

  /** @param json of the value */
  #readData(value: unknown, json: string, parts: ProviderPart[]): void {
    if (isTextDelta(value)) {
      this.#addText(value.delta.text, parts);
      return;
    }
    const event = readEvent(withExactNumbers(value, json, INPUTS));
    if (event !== null) this.#readEvent(event, parts);
  }

  #readEvent(event: ApiEvent, parts: ProviderPart[]): void {
    switch (event.type) {
      case 'message_start':
        this.#begin(event.message, parts);
        this.#addUsageSoFar(parts);
        return;
      case 'content_block_start':
        this.#open(event.index, event.content_block, parts);
        return;
      case 'content_block_delta':
        this.#readDelta(event.index, event.delta, parts);
        return;
      case 'content_block_stop':
        this.#close(event.index, parts);
        return;
      case 'message_delta':
        this.#finish(event.delta, event.usage, parts);
        return;
      case 'message_stop':
        this.ended = true;
        return;
      case 'error':
        throw new ErrorEvent(event.error);
    }
  }

  #readMessage(message: ApiMessage, parts: ProviderPart[]): void {
    this.#begin(message, parts);
    for (const [index, block] of message.content.entries()) {
      this.#open(index, block, parts);
      this.#close(index, parts);
    }
    this.#finish(message, message.usage, parts);
  }

  #begin({ id, usage }: ApiHead, parts: ProviderPart[]): void {
    this.#usage.begin(usage);
    parts.push({ type: 'response-metadata', id: id ?? null, systemFingerprint: null, serviceTier: usage?.service_tier ?? null });
  }

  #addUsageSoFar(parts: ProviderPart[]): void {
    const counted = this.#usage.soFar();
    if (counted !== null) parts.push({ type: 'usage-so-far', read: () => counted });
  }

  #open(index: number, block: ApiBlock, parts: ProviderPart[]): void {
    if (this.#blocks.size >= MAX_BLOCKS) throw new SyntaxError(`the answer has more than ${MAX_BLOCKS} blocks`);
    switch (block.type) {
      case 'text':
        this.#blocks.set(index, { kind: 'text', start: this.#textChars, citations: [...(block.citations ?? [])] });
        this.#addText(block.text ?? '', parts);
        return;
      case 'thinking':
        this.#openThinking(index, block, parts);
        return;
      case 'redacted_thinking':
        this.#add({ type: 'reasoning-encrypted', data: block.data, block: newBlock(index) }, parts);
        return;
      case 'tool_use':
      case 'server_tool_use':
        this.#openTool(index, block, parts);
        return;
      case 'other':
        if (block.callId === null) return;
        this.#add(
          { type: 'server-tool-result', id: block.callId, name: this.#serverTools.get(block.callId) ?? block.name, result: block.content ?? null },
          parts,
        );
    }
  }

  #openThinking(index: number, { thinking, signature }: Extract<ApiBlock, { type: 'thinking' }>, parts: ProviderPart[]): void {
    const block = newBlock(index);
    this.#blocks.set(index, { kind: 'thinking', block });
    if (thinking) this.#add({ type: 'reasoning-delta', text: thinking, block }, parts);
    if (signature) this.#add({ type: 'reasoning-signature', signature, block }, parts);
  }

  #openTool(index: number, { type, id, name, input }: Extract<ApiBlock, { id: string }>, parts: ProviderPart[]): void {
    if (type === 'server_tool_use') {
      this.#serverTools.set(id, name);
      this.#blocks.set(index, { kind: 'server-tool', id, name, input: input ?? {}, text: '' });
      return;
    }
    if (name === this.#answerTool) {
      this.#blocks.set(index, { kind: 'answer', input: input ?? {}, hasArguments: false });
      return;
    }
    this.#blocks.set(index, { kind: 'tool', index: this.#toolCalls, input: input ?? {}, hasArguments: false });
    this.#add({ type: 'tool-call-start', index: this.#toolCalls, id, name }, parts);
    this.#toolCalls += 1;
  }

  #readDelta(index: number, delta: ApiDelta, parts: ProviderPart[]): void {
    switch (delta.type) {
      case 'text_delta':
        this.#addText(delta.text, parts);
        return;
      case 'input_json_delta':
        this.#addArguments(this.#blocks.get(index), delta.partial_json, parts);
        return;
      case 'thinking_delta':
        if (delta.thinking !== '') this.#add({ type: 'reasoning-delta', text: delta.thinking, block: this.#thinkingAt(index) }, parts);
        return;
      case 'signature_delta':
        if (delta.signature !== '') this.#add({ type: 'reasoning-signature', signature: delta.signature, block: this.#thinkingAt(index) }, parts);
        return;
      case 'citations_delta':
        this.#cite(index, delta.citation, parts);
        return;
      case 'other':
    }
  }

  #thinkingAt(index: number): ReasoningBlock {
    const open = this.#blocks.get(index);
    return open?.kind === 'thinking' ? open.block : newBlock(index);
  }

  #addArguments(open: OpenBlock | undefined, text: string, parts: ProviderPart[]): void {
    // The first piece of a call is mostly empty.
    if (text === '' || open === undefined || open.kind === 'thinking' || open.kind === 'text') return;
    if (open.kind === 'server-tool') {
      open.text += text;
      if (open.text.length > MAX_HELD_CHARS) throw new SyntaxError(`a call of the tool ${open.name} is longer than ${MAX_HELD_CHARS} characters`);
      return;
    }
    open.hasArguments = true;
    if (open.kind === 'answer') this.#addText(text, parts);
    else this.#add({ type: 'tool-call-delta', index: open.index, arguments: text }, parts);
  }

  /** Calls whose arguments did not come in pieces have them in `input`: an object, empty for a call without any. */
  #close(index: number, parts: ProviderPart[]): void {
    const open = this.#blocks.get(index);
    if (open === undefined || open.kind === 'thinking') return;
    this.#blocks.delete(index);
    if (open.kind === 'text') {
      for (const citation of open.citations) this.#annotate(citation, open.start, parts);
      return;
    }
    if (open.kind === 'server-tool') {
      this.#add({ type: 'server-tool-call', id: open.id, name: open.name, arguments: open.text || exactJson(open.input) }, parts);
      return;
    }
    if (!open.hasArguments) this.#addArguments(open, exactJson(open.input), parts);
  }

  /** @param usage whose absence leaves the answer without usage, as that of the start lacks its tokens */
  #finish({ stop_reason: nativeReason, stop_details: details }: ApiStop, usage: ApiUsage, parts: ProviderPart[]): void {
    const counted = this.#usage.end(usage);
    if (counted !== null) this.hasUsage = true;
    if (nativeReason && !this.finished) {
      for (const index of [...this.#blocks.keys()]) this.#close(index, parts);
      if (nativeReason === 'refusal' && details?.explanation) this.#add({ type: 'refusal-delta', text: details.explanation }, parts);
      this.finished = true;
      parts.push({ type: 'finish', reason: this.#reasonOf(nativeReason), nativeReason });
    }
    if (counted !== null) parts.push({ type: 'usage', usage: counted });
  }

  /** Stated when its block ends, since only then the place of its text is known. */
  #cite(index: number, citation: unknown, parts: ProviderPart[]): void {
    const open = this.#blocks.get(index);
    if (open?.kind !== 'text') this.#annotate(citation, this.#textChars, parts);
    else if (open.citations.length < MAX_CITATIONS) open.citations.push(citation);
  }

  #annotate(citation: unknown, start: number, parts: ProviderPart[]): void {
    const annotation = toAnnotation(citation, { start, end: this.#textChars });
    if (annotation !== null) this.#add({ type: 'annotation', annotation }, parts);
  }

  #addText(text: string, parts: ProviderPart[]): void {
    if (text === '') return;
    this.hasContent = true;
    this.#textChars += text.length;
    parts.push({ type: 'text-delta', text });
  }

  #add(part: ProviderPart, parts: ProviderPart[]): void {
    this.hasContent = true;
    parts.push(part);
  }

  /** Unknown reasons become `stop`. */
  #reasonOf(native: string): FinishReason {
    switch (native) {
      case 'tool_use':
        return this.#toolCalls === 0 && this.#answerTool !== null ? 'stop' : 'tool_calls';
      case 'max_tokens':
      case 'model_context_window_exceeded':
        return 'length';
      case 'refusal':
        return 'content_filter';
      default:
        return 'stop';
    }
  }
}

/** Numbered as in the upstream's answer, where texts and calls count, too. */
function newBlock(index: number): ReasoningBlock {
  return { index, id: null, format: ANTHROPIC_FORMAT };
}
