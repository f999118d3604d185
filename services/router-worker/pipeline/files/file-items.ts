import type { ChatMessage, ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { askedParsing } from '#shared/prompts/asked-parsing.ts';
import { messagesBeyondText } from '#shared/prompts/deferred-messages.ts';
import { type PdfSource, pdfSourceOf } from '#shared/prompts/pdf-source.ts';

/** Of one request: each may take half a minute. */
export const MAX_FILES = 16;

export type ContentItem = Exclude<ChatMessage['content'], string | null | undefined>[number];
type FileItem = Extract<ContentItem, { type: 'file' }>;

/** A PDF of a request. */
export interface PdfItem {
  item: FileItem;
  /** As errors name it: `messages[0].content[1].file.file_data`. */
  path: string;
  source: PdfSource;
  /** Null: it has none. */
  filename: string | null;
}

/** In the order of the messages. */
export function pdfItemsIn(request: Pick<ChatRequest, 'messages'>): PdfItem[] {
  return messagesBeyondText(request).flatMap(({ content }, at) =>
    Array.isArray(content) ? content.flatMap((item, index) => pdfItemOf(item, `messages[${at}].content[${index}].file.file_data`) ?? []) : [],
  );
}

function pdfItemOf(item: ContentItem, path: string): PdfItem | null {
  const source = pdfSourceOf(item);
  return source === null || item.type !== 'file' ? null : { item, path, source, filename: item.file.filename ?? null };
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

/** The request without the PDFs that this router may read for it: an endpoint that takes no files can serve it. */
export function withoutReadFiles(request: ChatRequest): ChatRequest {
  const asked = askedParsing(request);
  if (asked === null || asked.engine === 'native') return request;
  return withItems(request, new Map(pdfItemsIn(request).map(({ item }) => [item, []])));
}
