/** Amounts of money are integers of a billionth of a US dollar. */
const NANO_USD_PER_USD = 1_000_000_000;

/** Sums stay exact in a JavaScript number below 9 million USD. */
export const MAX_LIMIT_USD = 1_000_000;

/** Rounded to the nearest billionth. */
export function nanoOfUsd(usd: number): number {
  return Math.round(usd * NANO_USD_PER_USD);
}

export function usdOfNano(nano: number): number {
  return nano / NANO_USD_PER_USD;
}
