import { z } from 'zod';
import type { Annotation } from '#shared/contracts/router/chat-completion.ts';

/** A citation of a page of the web; those of documents name no URL. */
const citation = z.object({
  url: z.string(),
  title: z.string().nullish(),
  cited_text: z.string().nullish(),
});

/** Null: a citation without a counterpart. @param range of the text that it is for, in characters of the answer */
export function toAnnotation(given: unknown, range: { start: number; end: number }): Annotation | null {
  const known = citation.safeParse(given).data;
  if (known === undefined) return null;
  const { url, title, cited_text: content } = known;
  return { type: 'url_citation', url_citation: { url, title: title ?? url, ...(content ? { content } : {}), start_index: range.start, end_index: range.end } };
}
