import { z } from 'zod';

/** An integer in a query: digits only. `Number()` alone would accept an empty text, spaces and hexadecimals. */
export const wholeNumber = z
  .string()
  .regex(/^\d{1,15}$/, 'must be a whole number of at most 15 digits, without a sign')
  .transform(Number);
