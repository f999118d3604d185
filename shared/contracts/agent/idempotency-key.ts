import { z } from 'zod';

/** Of a body. Keys are stored and compared in UTF-8, in which all lone surrogates are the same: two keys that are cut within an emoji would count as one. */
export const idempotencyKey = z
  .string()
  .min(1)
  .max(256)
  .refine((key) => key.isWellFormed(), 'has half of a character (a lone surrogate), as of an emoji that was cut: send whole characters');
