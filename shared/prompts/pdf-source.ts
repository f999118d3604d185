import type { ChatRequest } from '../contracts/router/chat-request.ts';

type ContentItem = Exclude<ChatRequest['messages'][number]['content'], string | null | undefined>[number];

/** `data` is base64. */
export type PdfSource = { type: 'base64'; data: string } | { type: 'url'; url: string };

/** A data URL of a PDF, up to its comma. */
const PDF_HEAD = /^data:application\/(?:x-)?pdf(?:;[^,;]*)*,/i;
const BASE64 = /;base64,$/i;
const WEB_URL = /^https?:\/\//i;
/** A data URL that is not base64 is read by no provider either. */
const MAX_HEAD_CHARS = 256;

/** Null: no PDF, as far as its address says. Files of other types, and those that a provider has stored, are none. */
export function pdfSourceOf(item: ContentItem): PdfSource | null {
  if (item.type !== 'file') return null;
  const { file_data: data } = item.file;
  if (data === undefined) return null;
  if (WEB_URL.test(data)) return { type: 'url', url: data };
  const head = PDF_HEAD.exec(data.slice(0, MAX_HEAD_CHARS))?.[0];
  return head !== undefined && BASE64.test(head) ? { type: 'base64', data: data.slice(head.length) } : null;
}
