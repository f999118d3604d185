import { z } from 'zod';

/** The rationale comes first: a model that has given its reasons judges better. */
const row = z.object({ id: z.int(), rationale: z.string(), applies: z.boolean() });

/** The finding of questions that ask for nothing else than the verdict. */
export const plainVerdict = { row, applies: ({ applies }: z.infer<typeof row>) => applies };
