import { z } from 'zod';
import type { FileAnnotation } from '../../contracts/router/chat-completion.ts';

const citation = z
  .object({
    type: z.literal('file_citation'),
    file_id: z.string(),
    filename: z.string(),
    content: z.array(
      z.union([z.object({ type: z.literal('text'), text: z.string() }), z.object({ type: z.literal('image_url'), image_url: z.object({ url: z.string() }) })]),
    ),
  })
  .transform(({ file_id: hash, filename: name, content }): FileAnnotation => ({ type: 'file', file: { hash, name, content } }));

/** What an earlier answer had read from files, of the annotations of its text. Others, and those that a client has cut, are passed over. */
export function filesIn(annotations: unknown): FileAnnotation[] {
  return Array.isArray(annotations) ? annotations.flatMap((annotation) => citation.safeParse(annotation).data ?? []) : [];
}
