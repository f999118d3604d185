import type { Logprobs } from '../../contracts/router/chat-completion.ts';
import type { ProviderPart, ReasoningBlock, ReasoningPart } from '../../contracts/router/provider-part.ts';
import type {
  OutputFunctionCall,
  OutputItem,
  OutputMessage,
  OutputReasoning,
  OutputRefusal,
  OutputText,
  ResponseAnnotation,
  ResponseLogprob,
} from '../../contracts/router/response-object.ts';
import { PLAIN_BLOCK } from '../answer.ts';
import { annotationOf } from './annotation-of.ts';
import { type ItemIds, itemIdsOf } from './item-ids.ts';
import { logprobsOf } from './logprobs-of.ts';

export type ReasoningText = OutputReasoning['content'][number] | OutputReasoning['summary'][number];
export type MessagePart = OutputText | OutputRefusal;

/** Where a text stands: the item in the output, and the part in its list of the item. */
export interface Place {
  id: string;
  item: number;
  part: number;
}

/** Notified of each change, in order. */
export interface ItemObserver {
  onItem(item: OutputItem, place: number): void;
  onPart(part: MessagePart | ReasoningText, place: Place): void;
  onText(part: MessagePart | ReasoningText, text: string, place: Place, logprobs: ResponseLogprob[]): void;
  onAnnotation(annotation: ResponseAnnotation, index: number, place: Place): void;
  onArguments(item: OutputFunctionCall, text: string, place: number): void;
  /** Complete, with its last status. */
  onClosed(item: OutputItem, place: number): void;
}

/**
 * The output of a response, accumulated from parts. There is one message, which has all texts, as in a chat; an item of reasoning per block, closed by what
 * follows it; and an item per call of a tool. Message and calls stay open to the end, since upstreams may continue any of them.
 */
export class OutputItems {
  readonly list: OutputItem[] = [];
  readonly #ids: ItemIds;
  readonly #observer: ItemObserver | null;
  readonly #open = new Set<number>();
  #message: { item: OutputMessage; place: number } | null = null;
  #text: { part: OutputText; place: Place } | null = null;
  #refusal: { part: OutputRefusal; place: Place } | null = null;
  #reasoning: { item: OutputReasoning; place: number; block: ReasoningBlock } | null = null;
  /** By our number of the call. */
  readonly #calls = new Map<number, { item: OutputFunctionCall; place: number }>();

  /** @param observer null: nothing is to be notified */
  constructor(generationId: string, observer: ItemObserver | null) {
    this.#ids = itemIdsOf(generationId);
    this.#observer = observer;
  }

  /** Id of the message, before it is there, too. */
  get messageId(): string {
    return this.#ids.message;
  }

  /** Of the text; null before its first character. */
  get textPlace(): Place | null {
    return this.#text?.place ?? null;
  }

  /** Adds a text without any event. Call it only when the text has a place, and no reasoning is open. */
  appendText(text: string): void {
    (this.#text as { part: OutputText }).part.text += text;
  }

  get hasOpenReasoning(): boolean {
    return this.#reasoning !== null;
  }

  add(part: ProviderPart): void {
    switch (part.type) {
      case 'text-delta':
        this.#addText(part.text, part.logprobs);
        return;
      case 'refusal-delta':
        this.#addRefusal(part.text);
        return;
      case 'reasoning-delta':
      case 'reasoning-summary-delta':
      case 'reasoning-signature':
      case 'reasoning-encrypted':
        this.#addReasoning(part);
        return;
      case 'annotation': {
        // An empty message behind calls of tools would be sent back to models.
        if (part.annotation.type === 'file' && this.#text === null) return;
        const { part: text, place } = this.#openText();
        const annotation = annotationOf(part.annotation);
        text.annotations.push(annotation);
        this.#observer?.onAnnotation(annotation, text.annotations.length - 1, place);
        return;
      }
      case 'image':
        this.#addImage(part.url);
        return;
      case 'tool-call-start': {
        this.#closeReasoning();
        const id = this.#ids.functionCall(this.list.length);
        const item: OutputFunctionCall = { type: 'function_call', id, call_id: part.id, name: part.name, arguments: '', status: 'in_progress' };
        this.#calls.set(part.index, { item, place: this.#begin(item) });
        return;
      }
      case 'tool-call-delta': {
        const call = this.#calls.get(part.index);
        if (call === undefined) return;
        call.item.arguments += part.arguments;
        this.#observer?.onArguments(call.item, part.arguments, call.place);
        return;
      }
      // This API has no item for sound; metadata, usage and end are not of an item.
      case 'audio-delta':
      case 'response-metadata':
      case 'server-tool-call':
      case 'server-tool-result':
      case 'vectors':
      case 'usage':
      case 'usage-so-far':
      case 'fields-omitted':
      case 'finish':
        return;
    }
  }

  closeAll(status: 'completed' | 'incomplete'): void {
    for (const place of this.#open) this.#close(place, status);
    this.#reasoning = null;
  }

  #addText(text: string, logprobs: Logprobs | undefined): void {
    const { part, place } = this.#openText();
    const alternatives = logprobs === undefined ? [] : logprobsOf(logprobs.content);
    part.text += text;
    if (alternatives.length > 0) part.logprobs.push(...alternatives);
    this.#observer?.onText(part, text, place, alternatives);
  }

  #openText(): { part: OutputText; place: Place } {
    this.#closeReasoning();
    this.#text ??= this.#openPart<OutputText>({ type: 'output_text', text: '', annotations: [], logprobs: [] });
    return this.#text;
  }

  #addRefusal(text: string): void {
    this.#closeReasoning();
    this.#refusal ??= this.#openPart<OutputRefusal>({ type: 'refusal', refusal: '' });
    const { part, place } = this.#refusal;
    part.refusal += text;
    this.#observer?.onText(part, text, place, []);
  }

  #openPart<Part extends MessagePart>(part: Part): { part: Part; place: Place } {
    if (this.#message === null) {
      const item: OutputMessage = { type: 'message', id: this.#ids.message, role: 'assistant', status: 'in_progress', content: [] };
      this.#message = { item, place: this.#begin(item) };
    }
    const { item, place } = this.#message;
    const at = { id: item.id, item: place, part: item.content.length };
    this.#observer?.onPart(part, at);
    item.content.push(part);
    return { part, place: at };
  }

  #addReasoning(part: ReasoningPart): void {
    const { item, place } = this.#reasoningOf(part);
    switch (part.type) {
      case 'reasoning-delta':
        this.#addThought(item.content, { type: 'reasoning_text', text: part.text }, { id: item.id, item: place, part: 0 });
        return;
      case 'reasoning-summary-delta':
        this.#addThought(item.summary, { type: 'summary_text', text: part.text }, { id: item.id, item: place, part: 0 });
        return;
      case 'reasoning-signature':
        item.signature = `${item.signature ?? ''}${part.signature}`;
        return;
      case 'reasoning-encrypted':
        item.encrypted_content = part.data;
    }
  }

  /** The open item of the part's block, or a new one: one item has one encrypted content. */
  #reasoningOf(part: ReasoningPart): { item: OutputReasoning; place: number } {
    const block = part.block ?? PLAIN_BLOCK;
    const open = this.#reasoning;
    const isFull = part.type === 'reasoning-encrypted' && open?.item.encrypted_content !== null;
    if (open !== null && open.block.index === block.index && !isFull) return open;
    this.#closeReasoning();
    const id = block.id ?? this.#ids.reasoning(this.list.length);
    const item: OutputReasoning = {
      ...{ type: 'reasoning' as const, id, summary: [], content: [], encrypted_content: null, signature: null },
      ...{ format: block.format, status: 'in_progress' as const },
    };
    this.#reasoning = { item, place: this.#begin(item), block };
    return this.#reasoning;
  }

  #addThought<Thought extends ReasoningText>(list: Thought[], added: Thought, place: Place): void {
    const { text } = added;
    const [open] = list;
    if (open === undefined) {
      this.#observer?.onPart({ ...added, text: '' }, place);
      list.push(added);
    } else open.text += text;
    this.#observer?.onText(added, text, place, []);
  }

  #addImage(url: string): void {
    this.#closeReasoning();
    const item: OutputItem = { type: 'image_generation_call', id: this.#ids.image(this.list.length), status: 'in_progress', result: null };
    const place = this.#begin(item);
    item.result = base64In(url) ?? url;
    this.#close(place, 'completed');
  }

  #begin(item: OutputItem): number {
    const place = this.list.push(item) - 1;
    this.#open.add(place);
    this.#observer?.onItem(item, place);
    return place;
  }

  #closeReasoning(): void {
    if (this.#reasoning === null) return;
    this.#close(this.#reasoning.place, 'completed');
    this.#reasoning = null;
  }

  #close(place: number, status: 'completed' | 'incomplete'): void {
    const item = this.list[place] as OutputItem;
    this.#open.delete(place);
    item.status = status;
    this.#observer?.onClosed(item, place);
  }
}

/** Null: the URL is no data URL in base64. */
function base64In(url: string): string | null {
  if (!url.startsWith('data:')) return null;
  const comma = url.indexOf(',');
  return url.slice(0, comma).endsWith(';base64') ? url.slice(comma + 1) : null;
}
