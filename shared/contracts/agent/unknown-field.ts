import { z } from 'zod';

/** Reports an unknown field under its own path; `z.never()` reports the object's. */
export const unknownField = z.custom<never>(() => false, 'is not a known field');
