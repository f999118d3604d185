import type { AgentEvent } from '#client/api.ts';
import type { FollowItem } from '#client/follow-item.ts';
import { printable } from '../commands/dependencies.ts';

/** Prints replies as they are written. A terminal can't take text back: a text that is replaced is printed again on a new line. */
export class ReplyPrinter {
  readonly #write: (text: string) => void;
  /** Of the reply in the current line; empty: the line is empty. */
  #shown = '';
  #messageId: string | null = null;

  constructor(write: (text: string) => void) {
    this.#write = write;
  }

  take(item: FollowItem): void {
    switch (item.type) {
      case 'delta':
        this.#show(item.messageId, (this.#messageId === item.messageId ? this.#shown : '') + item.text);
        return;
      case 'snapshot':
        this.#show(item.messageId, item.text);
        return;
      case 'reply-cancelled':
        if (this.#messageId === item.messageId) this.#line('(not sent)');
        return;
      case 'connection':
        if (item.state === 'waiting' && item.error !== null) this.#line(`(connection lost: ${printable(item.error.message)})`);
        return;
      case 'event':
        this.#event(item.event);
    }
  }

  #event(event: AgentEvent): void {
    if (event.kind === 'assistant_message') {
      this.#show(event.id, event.text);
      this.#end();
    } else if (event.kind === 'preamble') this.#line(`(${clean(event.text)})`);
    else if (event.kind === 'tool') this.#line(`[${event.tool_calls.map(({ tool_id }) => printable(tool_id)).join(', ')}]`);
    else if (event.kind === 'status' && event.status === 'error') this.#line(`error: ${printable(event.error_detail ?? 'the turn has failed')}`);
    else if (event.kind === 'user_message' && event.source !== 'customer') this.#line(`${event.source}: ${clean(event.text)}`);
  }

  #show(messageId: string, text: string): void {
    const isContinued = this.#messageId === messageId && text.startsWith(this.#shown);
    if (!isContinued) this.#end();
    this.#write(clean(isContinued ? text.slice(this.#shown.length) : text));
    this.#messageId = messageId;
    this.#shown = text;
  }

  #line(text: string): void {
    this.#end();
    this.#write(`${text}\n`);
  }

  #end(): void {
    if (this.#messageId !== null) this.#write('\n');
    this.#messageId = null;
    this.#shown = '';
  }
}

/** As `printable`, with its line breaks. */
function clean(text: string): string {
  return text
    .split('\n')
    .map((line) => line.replaceAll(/[\p{Cc}\p{Cf}]+/gu, ' '))
    .join('\n');
}
