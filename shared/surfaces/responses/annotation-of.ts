import type { Annotation } from '../../contracts/router/chat-completion.ts';
import type { ResponseAnnotation } from '../../contracts/router/response-object.ts';

/** Flat. Clients require both indexes: without a place it is at the start of the text. */
export function annotationOf({ url_citation: { url, title, content, start_index: start, end_index: end } }: Annotation): ResponseAnnotation {
  return { type: 'url_citation', url, title, start_index: start ?? 0, end_index: end ?? start ?? 0, ...(content !== undefined && { content }) };
}
