import type { RouterErrorBody, Usage } from '../../contracts/router/chat-completion.ts';
import type { ProviderPart } from '../../contracts/router/provider-part.ts';
import { type RouterMetadata, withMetadata } from '../../contracts/router/router-metadata.ts';
import type { Answer } from '../answer.ts';
import type { AnswerHead, PartWriter, Template } from '../surface.ts';
import { errorFieldOf } from './error-code.ts';
import { ItemEvents } from './item-events.ts';
import { OutputItems, type Place } from './output-items.ts';
import { endingOf, responseJson, statedIn } from './response-of.ts';

/** Behind the last event, whatever it is. */
export const END_MARKER = 'data: [DONE]\n\n';
/**
 * Of texts and arguments. The last events repeat them up to five times, each character has up to six bytes as JSON, and all must fit one frame of the bus (64
 * MiB). Models give a third of it at most.
 */
export const MAX_STREAMED_TEXT_CHARS = 2 * 1024 * 1024;

/** Writes the events of one response. It keeps the texts, which the last events repeat: its surface says how much that may be. */
export class EventWriter implements PartWriter {
  readonly #head: AnswerHead;
  readonly #answer: Pick<Answer, 'metadata'>;
  readonly #events: ItemEvents;
  readonly #items: OutputItems;
  #stated = '';
  /** Of texts in the template: known once it is stated, also when reasoning comes first. */
  #templatePlace: Place | null = null;
  /** Null when parts were written since it was looked up. */
  #isFitting: boolean | null = null;

  constructor(head: AnswerHead, answer: Pick<Answer, 'metadata'>) {
    this.#head = head;
    this.#answer = answer;
    this.#events = new ItemEvents(head);
    this.#items = new OutputItems(head.id, this.#events);
  }

  get template(): Template {
    const { messageId, list, textPlace } = this.#items;
    this.#templatePlace ??= textPlace ?? { id: messageId, item: list.length, part: 0 };
    return this.#events.template(this.#templatePlace);
  }

  text(parts: readonly ProviderPart[]): string | null {
    const part = parts[0] as ProviderPart;
    if (parts.length !== 1 || part.type !== 'text-delta' || part.logprobs !== undefined) return null;
    this.#isFitting ??= this.#fitsTemplate();
    if (!this.#isFitting) return null;
    this.#items.appendText(part.text);
    return this.#events.textInTemplate(part.text);
  }

  parts(parts: readonly ProviderPart[]): string {
    this.#isFitting = null;
    for (const part of parts) {
      if (!isStated(part)) continue;
      this.#begin();
      this.#items.add(part);
    }
    return this.#events.take();
  }

  /** The option has no effect here. */
  debug(): string {
    return '';
  }

  done(answer: Answer, usage: Usage, metadata?: RouterMetadata): string {
    const { status, reason } = endingOf(answer);
    this.#end(status === 'completed' ? status : 'incomplete');
    this.#respond(`response.${status}`, { status, reason, usage, metadata });
    return `${this.#events.take()}${END_MARKER}`;
  }

  failed({ error, openrouter_metadata: metadata }: RouterErrorBody, usage: Usage | null): string {
    this.#end('incomplete');
    if (this.#head.failures === 'response.error') this.#events.emit('response.error', withMetadata(JSON.stringify({ error: errorFieldOf(error) }), metadata));
    else this.#respond('response.failed', { status: 'failed', error, usage, metadata });
    return `${this.#events.take()}${END_MARKER}`;
  }

  /** Whether the message has a text where the template says, and nothing must be closed before. */
  #fitsTemplate(): boolean {
    const { textPlace, hasOpenReasoning } = this.#items;
    const place = this.#templatePlace;
    return textPlace !== null && place !== null && !hasOpenReasoning && textPlace.item === place.item && textPlace.part === place.part;
  }

  #begin(): void {
    if (this.#events.hasBegun) return;
    this.#stated = statedIn(this.#head.request);
    this.#respond('response.created', { status: 'in_progress', usage: null });
    this.#respond('response.in_progress', { status: 'in_progress', usage: null });
  }

  #end(status: 'completed' | 'incomplete'): void {
    this.#begin();
    this.#items.closeAll(status);
  }

  #respond(type: string, state: Omit<Parameters<typeof responseJson>[2], 'output' | 'serviceTier'>): void {
    const { error } = state;
    const json = responseJson(this.#head, this.#stated, { ...state, output: this.#items.list, serviceTier: this.#answer.metadata.serviceTier });
    this.#events.emit(type, `{"response":${json}${error === undefined ? '' : `,"error_type":${JSON.stringify(error.type)}`}}`);
  }
}

/** Whether the API has a form for it. */
function isStated({ type }: ProviderPart): boolean {
  switch (type) {
    case 'audio-delta':
    case 'response-metadata':
    case 'server-tool-call':
    case 'server-tool-result':
    case 'vectors':
    case 'usage':
    case 'usage-so-far':
    case 'fields-omitted':
    case 'finish':
      return false;
    default:
      return true;
  }
}
