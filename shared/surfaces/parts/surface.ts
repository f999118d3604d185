import type { RouterErrorBody, Usage } from '../../contracts/router/chat-completion.ts';
import type { ProviderPart } from '../../contracts/router/provider-part.ts';
import { type Answer, finishReasonOf } from '../answer.ts';
import type { PartWriter, Surface, Template } from '../surface.ts';

/** For actors: parts as adapters yield them. Read by `textIn` (text-in.ts); not public. */
export const parts: Surface = {
  request: null,
  partWriter: () => writer,
  wholeBody: (answer, _head, usage, error) => JSON.stringify({ ...endOf(answer, usage), text: answer.text, toolCalls: answer.toolCalls, error }),
  errorEvent: ({ error }: RouterErrorBody) => eventOf({ type: 'error', error }),
};

/** The end states what they say. */
const UNSTATED: ReadonlySet<ProviderPart['type']> = new Set(['usage', 'usage-so-far', 'fields-omitted', 'finish', 'response-metadata']);

const writer: PartWriter = {
  get template(): Template {
    return { prefix: 'data: {"type":"text-delta","text":', suffix: '}\n\n' };
  },
  text(received) {
    const part = received[0] as ProviderPart;
    return received.length === 1 && part.type === 'text-delta' ? JSON.stringify(part.text) : null;
  },
  parts: (received) =>
    received
      .filter(({ type }) => !UNSTATED.has(type))
      .map(eventOf)
      .join(''),
  debug: (upstreamBody) => eventOf({ type: 'debug', upstreamBody }),
  done: (answer, usage) => eventOf({ type: 'done', ...endOf(answer, usage) }),
};

function endOf(answer: Answer, usage: Usage) {
  return { finishReason: finishReasonOf(answer), usage };
}

function eventOf(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}
