import type { ChatRequest } from '../contracts/router/chat-request.ts';

type Messages = ChatRequest['messages'];

/** The size of what a provider may count as prompt, beside pictures, recordings and files. */
interface TextSize {
  /** In UTF-16 units. */
  chars: number;
  /** Of UTF-8, beyond one for each of them. */
  extraBytes: number;
}

export interface MessagesSize extends TextSize {
  /** Of contents alone, in UTF-16 units: without calls of functions. */
  contentChars: number;
}

export function sizeOfMessages(messages: Messages): MessagesSize {
  const { chars, extraBytes } = sizeOf(textsOfMessages(messages));
  return { chars, extraBytes, contentChars: contentCharsOf(messages) };
}

export function contentCharsOf(messages: Messages): number {
  return messages.reduce((sum, { content }) => sum + charsIn(content), 0);
}

function charsIn(content: Messages[number]['content']): number {
  if (typeof content === 'string') return content.length;
  return (content ?? []).reduce((sum, item) => sum + (item.type === 'text' ? item.text.length : 0), 0);
}

export function sizeOf(texts: Iterable<string>): TextSize {
  let chars = 0;
  let extraBytes = 0;
  for (const text of texts) {
    chars += text.length;
    extraBytes += Buffer.byteLength(text, 'utf8') - text.length;
  }
  return { chars, extraBytes };
}

function* textsOfMessages(messages: Messages): Iterable<string> {
  for (const { content, ...rest } of messages) {
    if (typeof content === 'string') yield content;
    else
      for (const item of content ?? [])
        if (item.type !== 'image_url' && item.type !== 'input_audio' && item.type !== 'file') yield item.type === 'text' ? item.text : JSON.stringify(item);
    // Tool calls, names and reasoning that is sent back.
    if (Object.keys(rest).length > 1) yield JSON.stringify(rest);
  }
}
