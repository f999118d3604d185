import type { ChatMessage } from '../../contracts/router/chat-request.ts';
import type { InputItem, InputMessage, InputPart, ReasoningInput } from '../../contracts/router/responses-input.ts';
import { filesIn } from './files-in.ts';
import { toReasoningDetails } from './to-reasoning-details.ts';

type AssistantMessage = Extract<ChatMessage, { role: 'assistant' }>;
type ToolCalls = NonNullable<AssistantMessage['tool_calls']>;

/**
 * Items of one earlier answer, which are one message of a chat: its reasoning, its text and its calls of tools. All items up to the next of another kind are one
 * answer, since outputs of tools must follow the message with their calls; only a second text without calls between begins another.
 */
export class AnswerBefore {
  #texts: string[] = [];
  #refusal = '';
  #details: object[] = [];
  #calls: ToolCalls = [];
  #files: Record<string, unknown>[] = [];

  /** @returns false for an item of another kind, which the answer does not contain */
  add(item: InputItem, messages: ChatMessage[]): boolean {
    if ('role' in item && item.role !== undefined) {
      const message = item as InputMessage;
      if (message.role !== 'assistant') return false;
      if (this.#hasText() && this.#calls.length === 0) this.flush(messages);
      this.#addText(message.content);
      return true;
    }
    switch (item.type) {
      case 'reasoning':
        this.#details.push(...toReasoningDetails(item as ReasoningInput, this.#details.length));
        return true;
      case 'function_call': {
        const { call_id: id, name, arguments: text } = item as Extract<InputItem, { arguments: string }>;
        this.#calls.push({ id, type: 'function', function: { name, arguments: text } });
        return true;
      }
      case 'web_search_call':
      case 'image_generation_call':
        return true;
      default:
        return false;
    }
  }

  /** Reasoning alone is no message: nothing followed from it. */
  flush(messages: ChatMessage[]): void {
    if (this.#hasText() || this.#calls.length > 0) messages.push(this.#message());
    this.#texts = [];
    this.#refusal = '';
    this.#details = [];
    this.#calls = [];
    this.#files = [];
  }

  #message(): AssistantMessage {
    const [first = null, ...more] = this.#texts;
    return {
      role: 'assistant',
      content: more.length === 0 ? first : this.#texts.map((text) => ({ type: 'text', text })),
      ...(this.#refusal !== '' && { refusal: this.#refusal }),
      ...(this.#details.length > 0 && { reasoning_details: this.#details }),
      ...(this.#calls.length > 0 && { tool_calls: this.#calls }),
      ...(this.#files.length > 0 && { annotations: this.#files }),
    };
  }

  #hasText(): boolean {
    return this.#texts.length > 0 || this.#refusal !== '';
  }

  #addText(content: string | readonly InputPart[]): void {
    if (typeof content === 'string') this.#texts.push(content);
    else
      for (const part of content) {
        if (part.type === 'refusal') this.#refusal += part.refusal;
        else if ('text' in part) {
          this.#texts.push(part.text as string);
          this.#files.push(...filesIn(part.annotations).map((annotation) => ({ ...annotation })));
        }
      }
  }
}
