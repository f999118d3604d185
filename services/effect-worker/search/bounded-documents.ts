import type { FoundDocument } from '#bus/messages/found-document.ts';

/** Of all documents of a search, as JSON. */
const MAX_BYTES = 32 * 1024;
const MAX_TITLE_CHARACTERS = 500;
const MAX_URL_CHARACTERS = 2_000;

/**
 * The best documents, as many as fit. The best one is cut if it alone is too large.
 * @param documents the best first
 */
export function boundedDocuments(documents: readonly FoundDocument[], topK: number): FoundDocument[] {
  const kept: FoundDocument[] = [];
  let bytes = 0;
  for (const document of documents.slice(0, topK)) {
    const bounded = { ...document, title: document.title?.slice(0, MAX_TITLE_CHARACTERS) ?? null, url: shortUrl(document.url) };
    bytes += sizeOf(bounded);
    if (bytes > MAX_BYTES) return kept.length > 0 ? kept : [cut(bounded)];
    kept.push(bounded);
  }
  return kept;
}

/** A part of a URL leads nowhere. */
function shortUrl(url: string | null): string | null {
  return url !== null && url.length <= MAX_URL_CHARACTERS ? url : null;
}

/** To the longest beginning that fits, found by halving. */
function cut(document: FoundDocument): FoundDocument {
  let fits = 0;
  let tooLong = Math.min(document.content.length, MAX_BYTES + 1);
  while (tooLong - fits > 1) {
    const middle = Math.floor((fits + tooLong) / 2);
    if (sizeOf({ ...document, content: document.content.slice(0, middle) }) <= MAX_BYTES) fits = middle;
    else tooLong = middle;
  }
  return { ...document, content: document.content.slice(0, fits) };
}

function sizeOf(document: FoundDocument): number {
  return Buffer.byteLength(JSON.stringify(document));
}
