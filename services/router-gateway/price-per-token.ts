/** Decimal places between a price per million and per one. */
const PLACES = 6;

/** USD per token from USD per million tokens, both decimal strings. Shifts digits without arithmetic, so that no precision is lost. */
export function pricePerToken(perMillion: string): string {
  const [whole = '', fraction = ''] = perMillion.split('.');
  const digits = whole.padStart(PLACES + 1, '0');
  const units = digits.slice(0, -PLACES).replace(/^0+(?=\d)/, '');
  const decimals = `${digits.slice(-PLACES)}${fraction}`.replace(/0+$/, '');
  return decimals === '' ? units : `${units}.${decimals}`;
}
