import { z } from 'zod';
import { documentHeader, documentId } from './document.ts';
import { variableName } from './variable-set.ts';

/** In a text, `${id}` is a macro and `$${` the text `${`; the one group is the id. To be read with `matchAll` or `replaceAll`. */
export const MACRO_REFERENCE = /\$\$\{|\$\{([A-Za-z0-9_-]+)\}/g;

/** What `${id}` stands for in a step's text or the greeting: a constant text, or the value of a variable of the session's customer. */
export const macro = z
  .strictObject({
    ...documentHeader,
    value: z.string().nullable().default(null),
    variable: z
      .strictObject({
        /** Id of the variable set. */
        set: documentId,
        name: variableName,
        /** Used while the variable has no value. */
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
