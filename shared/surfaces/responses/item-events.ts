import type { OutputFunctionCall, OutputItem, ResponseAnnotation, ResponseLogprob } from '../../contracts/router/response-object.ts';
import type { EventHead, Template } from '../surface.ts';
import type { ItemObserver, MessagePart, Place, ReasoningText } from './output-items.ts';

type TextPart = MessagePart | ReasoningText;

/** The events of one response, numbered from 0. */
export class ItemEvents implements ItemObserver {
  /** Behind texts that are written whole: from it a worker that takes the call over reads which endpoint answered. */
  readonly #origin: string;
  #pending = '';
  #next = 0;

  constructor({ model, provider }: EventHead) {
    this.#origin = `,"model":${JSON.stringify(model)},"provider":${JSON.stringify(provider)}}\n\n`;
  }

  get hasBegun(): boolean {
    return this.#next > 0;
  }

  /** The events since the last call. */
  take(): string {
    const events = this.#pending;
    this.#pending = '';
    return events;
  }

  /** What stands around a text at this place and its number. */
  template(place: Place): Template {
    return { prefix: `${textStart(place)},"logprobs":[],"sequence_number":`, suffix: '}\n\n' };
  }

  /** A text as it stands in the template. Its event counts. */
  textInTemplate(text: string): string {
    return `${this.#number()},"delta":${JSON.stringify(text)}`;
  }

  /** @param fields JSON of an object that has some */
  emit(type: string, fields: string): void {
    this.#pending += `data: {"type":"${type}","sequence_number":${this.#number()},${fields.slice(1)}\n\n`;
  }

  onItem(item: OutputItem, place: number): void {
    this.emit('response.output_item.added', JSON.stringify({ output_index: place, item }));
  }

  onPart(part: TextPart, place: Place): void {
    if (part.type === 'summary_text') this.emit('response.reasoning_summary_part.added', inSummary(place, { part }));
    else this.emit('response.content_part.added', inContent(place, { part }));
  }

  onText(part: TextPart, text: string, place: Place, logprobs: ResponseLogprob[]): void {
    switch (part.type) {
      case 'output_text': {
        const alternatives = logprobs.length === 0 ? '[]' : JSON.stringify(logprobs);
        this.#pending += `${textStart(place)},"logprobs":${alternatives},"sequence_number":${this.textInTemplate(text)}${this.#origin}`;
        return;
      }
      case 'refusal':
        this.emit('response.refusal.delta', inContent(place, { delta: text }));
        return;
      case 'reasoning_text':
        this.emit('response.reasoning_text.delta', inContent(place, { delta: text }));
        return;
      case 'summary_text':
        this.emit('response.reasoning_summary_text.delta', inSummary(place, { delta: text }));
    }
  }

  onAnnotation(annotation: ResponseAnnotation, index: number, place: Place): void {
    this.emit('response.output_text.annotation.added', inContent(place, { annotation_index: index, annotation }));
  }

  onArguments({ id }: OutputFunctionCall, text: string, place: number): void {
    this.emit('response.function_call_arguments.delta', JSON.stringify({ item_id: id, output_index: place, delta: text }));
  }

  onClosed(item: OutputItem, place: number): void {
    const { id } = item;
    if (item.type === 'function_call') {
      const { name, arguments: text } = item;
      this.emit('response.function_call_arguments.done', JSON.stringify({ item_id: id, output_index: place, name, arguments: text }));
    }
    if (item.type === 'reasoning') for (const [part, summary] of item.summary.entries()) this.#closePart(summary, { id, item: place, part });
    if ('content' in item) for (const [part, content] of item.content.entries()) this.#closePart(content, { id, item: place, part });
    this.emit('response.output_item.done', JSON.stringify({ output_index: place, item }));
  }

  #closePart(part: TextPart, place: Place): void {
    switch (part.type) {
      case 'summary_text':
        this.emit('response.reasoning_summary_text.done', inSummary(place, { text: part.text }));
        this.emit('response.reasoning_summary_part.done', inSummary(place, { part }));
        return;
      case 'output_text':
        this.emit('response.output_text.done', inContent(place, { text: part.text, logprobs: part.logprobs }));
        break;
      case 'refusal':
        this.emit('response.refusal.done', inContent(place, { refusal: part.refusal }));
        break;
      case 'reasoning_text':
        this.emit('response.reasoning_text.done', inContent(place, { text: part.text }));
        break;
    }
    this.emit('response.content_part.done', inContent(place, { part }));
  }

  #number(): number {
    const number = this.#next;
    this.#next += 1;
    return number;
  }
}

function textStart({ id, item, part }: Place): string {
  return `data: {"type":"response.output_text.delta","item_id":${JSON.stringify(id)},"output_index":${item},"content_index":${part}`;
}

function inContent({ id, item, part }: Place, fields: object): string {
  return JSON.stringify({ item_id: id, output_index: item, content_index: part, ...fields });
}

function inSummary({ id, item, part }: Place, fields: object): string {
  return JSON.stringify({ item_id: id, output_index: item, summary_index: part, ...fields });
}
