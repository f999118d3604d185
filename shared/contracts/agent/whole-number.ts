import { z } from 'zod';

/** A number in a query. Digits and nothing else: `Number()` alone would also take an empty text, spaces and hexadecimals. */
export const wholeNumber = z
  .string()
  .regex(/^\d{1,15}$/, 'must be a whole number')
  .transform(Number);
