import { z } from 'zod';
import { documentHeader } from './document.ts';
import { refuseRepeats } from './refuse-repeats.ts';

const term = z.strictObject({
  name: z.string().min(1),
  description: z.string().min(1),
  synonyms: z.array(z.string().min(1)).default([]),
});

/** Terms with a meaning specific to the agent. Names are compared case-insensitively. */
export const glossary = z.strictObject({
  ...documentHeader,
  terms: z
    .array(term)
    .min(1)
    .superRefine(refuseRepeats(({ name }) => name.toLowerCase(), ['name'])),
});
export type Glossary = z.infer<typeof glossary>;
