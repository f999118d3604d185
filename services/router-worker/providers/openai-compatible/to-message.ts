import { z } from 'zod';
import type { ChatMessage } from '#shared/contracts/router/chat-request.ts';
import type { Extension } from './extensions.ts';
import type { RequestForm } from './request-form.ts';

/** Fields of our answers that upstreams refuse, or must not see, when a client sends them back. */
const ONLY_OURS: ReadonlySet<string> = new Set(['reasoning', 'reasoning_content', 'reasoning_details', 'annotations', 'images', 'audio']);

/** `developer` becomes `system`, which every server understands. */
export function toMessage(
  message: ChatMessage,
  { extensions, messageFieldsLeftOut: leftOut }: Pick<RequestForm, 'extensions' | 'messageFieldsLeftOut'>,
): Record<string, unknown> {
  const itemOf = extensions.has('cache_control') ? toItem : (item: unknown) => withoutCacheControl(toItem(item));
  const copy: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(message)) {
    if (ONLY_OURS.has(name) || leftOut.has(name) || value === undefined || (value === null && name !== 'content')) continue;
    copy[name] = name === 'content' && Array.isArray(value) ? value.map(itemOf) : value;
  }
  if (message.role === 'developer') copy.role = 'system';
  // Some servers require `content: null` beside tool calls.
  if (message.role === 'assistant') {
    copy.content ??= null;
    Object.assign(copy, sentBack(message, extensions));
  }
  return copy;
}

/** Reasoning and sound of an earlier answer, in the form that the upstream takes back. */
function sentBack(message: Extract<ChatMessage, { role: 'assistant' }>, extensions: ReadonlySet<Extension>): Record<string, unknown> {
  const { reasoning, reasoning_content: content, reasoning_details: details, audio } = message;
  const text = reasoning ?? content;
  const plainText = text ?? textOf(details);
  return {
    ...(extensions.has('reasoning_details') && text && { reasoning: text }),
    ...(extensions.has('reasoning_details') && Array.isArray(details) && { reasoning_details: details }),
    ...(extensions.has('reasoning_content') && plainText && { reasoning_content: plainText }),
    // Upstreams know their sound by its id, and refuse the bytes.
    ...(typeof audio?.id === 'string' && { audio: { id: audio.id } }),
  };
}

const readable = z.union([
  z.object({ type: z.literal('reasoning.text'), text: z.string() }).transform(({ text }) => text),
  z.object({ type: z.literal('reasoning.summary'), summary: z.string() }).transform(({ summary }) => summary),
]);

/** Some clients send the details alone. */
function textOf(details: unknown): string {
  return Array.isArray(details) ? details.map((detail) => readable.safeParse(detail).data ?? '').join('') : '';
}

/** `input_video` is the older name of `video_url`. */
function toItem(item: unknown): unknown {
  return isItem(item) && item.type === 'input_video' ? { ...item, type: 'video_url' } : item;
}

export function withoutCacheControl(item: unknown): unknown {
  if (!isItem(item) || !('cache_control' in item)) return item;
  const { cache_control: _, ...rest } = item;
  return rest;
}

function isItem(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
