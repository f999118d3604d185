import { z } from 'zod';
import { documentHeader, documentId } from './document.ts';
import { variableName } from './variable-set.ts';

/** Matches `${id}`, a macro with its id as the one group, and `$${`, the escape of `${`. Global: use it with `matchAll` or `replaceAll`. */
export const MACRO_REFERENCE = /\$\$\{|\$\{([A-Za-z0-9_-]+)\}/g;

/** The expansion of `${id}` in a step's text or the greeting: a constant, or a variable of the session's customer. */
export const macro = z
  .strictObject({
    ...documentHeader,
    value: z.string().nullable().default(null),
    variable: z
      .strictObject({
        set: documentId,
        name: variableName,
        fallback: z.string().default(''),
      })
      .nullable()
      .default(null),
  })
  .refine(({ value, variable }) => (value === null) !== (variable === null), {
    path: ['value'],
    message: 'must be given, or else variable: exactly one of the two',
  });
export type Macro = z.infer<typeof macro>;
