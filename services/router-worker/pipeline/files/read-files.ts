import { z } from 'zod';
import { cleanText } from '#shared/clean-text.ts';
import type { FileAnnotation, FileContent } from '#shared/contracts/router/chat-completion.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { MAX_FILE_PICTURES } from '#shared/credit/parsed-files.ts';
import type { ContentItem } from './file-items.ts';

const MAX_NAME_CHARS = 200;
const DEFAULT_NAME = 'document.pdf';

const read = z.object({
  type: z.literal('file'),
  file: z.object({
    hash: z.string().regex(/^[0-9a-f]{64}$/),
    name: z.string().catch(DEFAULT_NAME),
    content: z.array(
      z.union([z.object({ type: z.literal('text'), text: z.string() }), z.object({ type: z.literal('image_url'), image_url: z.object({ url: z.string() }) })]),
    ),
  }),
});

/** What earlier answers of the conversation have read, by the hash of the file. Those of another form are passed over. */
export function filesReadBefore({ messages }: Pick<ChatRequest, 'messages'>): ReadonlyMap<string, FileAnnotation> {
  const found = messages.flatMap((message) => (message.role === 'assistant' ? (message.annotations ?? []) : []));
  return new Map(found.flatMap((annotation) => read.safeParse(annotation).data ?? []).map((annotation) => [annotation.file.hash, annotation]));
}

export function fileAnnotationOf(hash: string, filename: string | null, content: FileContent[]): FileAnnotation {
  const name = cleanText(filename ?? '')
    .replaceAll(/[\n\t"<>]/g, ' ')
    .trim()
    .slice(0, MAX_NAME_CHARS);
  return { type: 'file', file: { hash, name: name === '' ? DEFAULT_NAME : name, content } };
}

/** Characters of its texts. */
export function charsIn({ file: { content } }: FileAnnotation): number {
  return content.reduce((sum, item) => sum + (item.type === 'text' ? item.text.length : 0), 0);
}

/**
 * What a model is sent in the place of the file. The hash is in both marks: it is that of the file, which so can't contain the mark of its end.
 * @param replaced gives its mark of a cached prompt
 */
export function itemsOf({ file: { hash, name, content } }: FileAnnotation, replaced: ContentItem): ContentItem[] {
  const texts = content.flatMap((item) => (item.type === 'text' ? [item.text] : []));
  const images = content.filter((item) => item.type === 'image_url').slice(0, MAX_FILE_PICTURES);
  const text = `<file name=${JSON.stringify(name.replaceAll(/[\n\t"<>]/g, ' '))} sha256="${hash}">\n${texts.join('\n\n')}\n</file sha256="${hash}">`;
  const { cache_control: mark } = replaced as { cache_control?: unknown };
  return [{ type: 'text', text, ...(mark !== undefined && { cache_control: mark as { type: 'ephemeral' } }) }, ...images];
}
