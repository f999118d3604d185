import { askedParsing } from '#shared/contracts/router/asked-parsing.ts';
import type { ChatMessage, ChatRequest } from '#shared/contracts/router/chat-request.ts';

/** Of one request: each may take half a minute. */
export const MAX_FILES = 16;

export type ContentItem = Exclude<ChatMessage['content'], string | null | undefined>[number];
type FileItem = Extract<ContentItem, { type: 'file' }>;

/** `data` is base64. */
type FileSource = { type: 'base64'; data: string } | { type: 'url'; url: string };

/** A PDF of a request. */
export interface PdfItem {
  item: FileItem;
  /** As errors name it: `messages[0].content[1].file.file_data`. */
  path: string;
  source: FileSource;
  /** Null: it has none. */
  filename: string | null;
}

/** A data URL of a PDF, up to its comma. */
const PDF_HEAD = /^data:application\/(?:x-)?pdf(?:;[^,;]*)*,/i;
const BASE64 = /;base64,$/i;
const WEB_URL = /^https?:\/\//i;
/** A data URL that is not base64 is read by no provider either. */
const MAX_HEAD_CHARS = 256;

/** In the order of the messages. Files of other types, and those that a provider has stored, are none. */
export function pdfItemsIn({ messages }: Pick<ChatRequest, 'messages'>): PdfItem[] {
  return messages.flatMap(({ content }, at) =>
    Array.isArray(content) ? content.flatMap((item, index) => pdfItemOf(item, `messages[${at}].content[${index}].file.file_data`) ?? []) : [],
  );
}

function pdfItemOf(item: ContentItem, path: string): PdfItem | null {
  if (item.type !== 'file') return null;
  const { file_data: data, filename = null } = item.file;
  const source = data === undefined ? null : sourceOf(data);
  return source === null ? null : { item, path, source, filename };
}

/** Null: no PDF, as far as its address says. */
function sourceOf(data: string): FileSource | null {
  if (WEB_URL.test(data)) return { type: 'url', url: data };
  const head = PDF_HEAD.exec(data.slice(0, MAX_HEAD_CHARS))?.[0];
  return head !== undefined && BASE64.test(head) ? { type: 'base64', data: data.slice(head.length) } : null;
}

/** The request with other items in the place of its files. @param items by the item that they replace; one without any is left out */
export function withItems(request: ChatRequest, items: ReadonlyMap<ContentItem, readonly ContentItem[]>): ChatRequest {
  const messages = request.messages.map((message) => {
    const { content } = message;
    if (!Array.isArray(content) || !content.some((item) => items.has(item))) return message;
    return { ...message, content: content.flatMap((item) => items.get(item) ?? [item]) } as ChatMessage;
  });
  return { ...request, messages };
}

/** The request without the PDFs that this router reads for it: an endpoint that takes no files can serve it. */
export function withoutReadFiles(request: ChatRequest): ChatRequest {
  const asked = askedParsing(request);
  if (asked === null || asked.engine === 'native') return request;
  return withItems(request, new Map(pdfItemsIn(request).map(({ item }) => [item, []])));
}
