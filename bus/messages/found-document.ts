import { z } from 'zod';

/** What a search has found: untrusted text. Rows outlive releases, so fields are only added, as optional ones. */
export const foundDocument = z.object({
  content: z.string(),
  title: z.string().nullable(),
  url: z.string().nullable(),
});
export type FoundDocument = z.infer<typeof foundDocument>;
