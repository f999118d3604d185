/** A price per million is six decimal places away from a price per one. */
const PLACES = 6;

/** USD per token from USD per million tokens, both as decimal texts: digits are moved, never calculated with, so that none is lost. */
export function pricePerToken(perMillion: string): string {
  const [whole = '', fraction = ''] = perMillion.split('.');
  const digits = whole.padStart(PLACES + 1, '0');
  const units = digits.slice(0, -PLACES).replace(/^0+(?=\d)/, '');
  const decimals = `${digits.slice(-PLACES)}${fraction}`.replace(/0+$/, '');
  return decimals === '' ? units : `${units}.${decimals}`;
}
