import type { Annotation } from '#shared/contracts/router/chat-completion.ts';
import type { SearchResult } from './search-engine.ts';

/** Results as annotations of an answer whose text is not there yet. */
export function citationsOf(results: readonly SearchResult[]): Annotation[] {
  return results.map(({ url, title, content }) => ({ type: 'url_citation', url_citation: { url, title, ...(content === '' ? {} : { content }) } }));
}
