import { z } from 'zod';

/** No context has a tenth of it. More is no count, and its cost would fit no column of the ledger. */
const MOST_TOKENS = 100_000_000;

/** What an upstream states of a number of tokens. */
export const tokenCount = z.number().min(0).max(MOST_TOKENS).transform(Math.round);

/** Whether the schema would return it as it is. */
export function isTokenCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= MOST_TOKENS;
}
