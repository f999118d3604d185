const PLACES = 6;

/** USD per token from USD per million, both decimal strings. Shifts digits, so that no precision is lost. */
export function pricePerToken(perMillion: string): string {
  const [whole = '', fraction = ''] = perMillion.split('.');
  const digits = whole.padStart(PLACES + 1, '0');
  const units = digits.slice(0, -PLACES).replace(/^0+(?=\d)/, '');
  const decimals = `${digits.slice(-PLACES)}${fraction}`.replace(/0+$/, '');
  return decimals === '' ? units : `${units}.${decimals}`;
}
