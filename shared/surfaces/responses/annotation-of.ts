import type { Annotation } from '../../contracts/router/chat-completion.ts';
import type { ResponseAnnotation } from '../../contracts/router/response-object.ts';

/** Flat. Clients require both indexes: without a place it is at the start of the text. */
export function annotationOf(annotation: Annotation): ResponseAnnotation {
  if (annotation.type === 'file') {
    const { hash, name, content } = annotation.file;
    return { type: 'file_citation', file_id: hash, filename: name, index: 0, content };
  }
  const { url, title, content, start_index: start, end_index: end } = annotation.url_citation;
  return { type: 'url_citation', url, title, start_index: start ?? 0, end_index: end ?? start ?? 0, ...(content !== undefined && { content }) };
}
