import type { UrlCitation } from '#shared/contracts/router/chat-completion.ts';

/** A citation with its place in the text: the Markdown link to its page, else the bare address. Both ends 0: the text does not name it. */
export function located(annotation: UrlCitation, text: string): UrlCitation {
  const { url_citation: citation } = annotation;
  if (citation.start_index !== undefined) return annotation;
  const { start, end } = rangeOf(citation.url, text);
  return { ...annotation, url_citation: { ...citation, start_index: start, end_index: end } };
}

function rangeOf(url: string, text: string): { start: number; end: number } {
  // Models leave out a last slash.
  const found = placeOf(url, text) ?? placeOf(url.replace(/\/$/, ''), text);
  if (found === null) return { start: 0, end: 0 };
  const { start, end } = found;
  const open = text.slice(start - 2, start) === '](' ? text.lastIndexOf('[', start) : -1;
  return open === -1 || text[end] !== ')' ? found : { start: open, end: end + 1 };
}

/** Null: it is not there. The beginning of a longer address does not count. */
function placeOf(address: string, text: string): { start: number; end: number } | null {
  for (let start = text.indexOf(address); start !== -1; start = text.indexOf(address, start + 1)) {
    const end = start + address.length;
    if (!/[\w\-/?#%&=~]/.test(text[end] ?? '')) return { start, end };
  }
  return null;
}
