import { z } from 'zod';
import { cleanText } from '#shared/clean-text.ts';

/** Of the text that is stored and shown as evidence. */
const MAX_RATIONALE_CHARS = 1_000;

/** What a matching call found, as it is staged: it outlives releases, so fields are only added. */
export const matchAnswer = z.object({
  verdicts: z.array(
    z.object({
      id: z.string(),
      applies: z.boolean(),
      /** Null where the question has none. */
      rationale: z.string().nullable(),
    }),
  ),
  /** What to find out, where the customer may mean several things; null: nothing is ambiguous. */
  clarification: z
    .object({
      /** For the reply: what to ask the customer. */
      action: z.string(),
      /** References to what the customer may mean. */
      options: z.array(z.string()),
    })
    .nullable()
    .default(null),
});
export type MatchAnswer = z.infer<typeof matchAnswer>;

/** Of a model's text, which may repeat what a customer wrote. */
export function boundedRationale(text: string): string {
  // Cleaned after the cut, which may split a surrogate pair.
  return text.length <= MAX_RATIONALE_CHARS ? cleanText(text) : `${cleanText(text.slice(0, MAX_RATIONALE_CHARS - 1))}…`;
}
