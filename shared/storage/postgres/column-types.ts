import pg from 'pg';

const BIGINT = 20;
const BIGINT_ARRAY: number = 1016;
const asTextArray: (text: string) => unknown = pg.types.getTypeParser(BIGINT_ARRAY, 'text');

/**
 * How columns become values, given to every pool as `types`, so that all drivers agree: bigint is a number, json and jsonb are parsed,
 * timestamptz is a Date, bytea a Buffer, and numeric stays text, since no number can hold it.
 * @throws RangeError from the query, when a bigint does not fit a number: rounding it would name another row
 */
export const columnTypes: pg.CustomTypesConfig = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    if (oid === BIGINT) return toSafeInteger;
    if (oid === BIGINT_ARRAY) return (text: string) => toSafeIntegers(asTextArray(text));
    return format === 'binary' ? pg.types.getTypeParser(oid, 'binary') : pg.types.getTypeParser(oid, 'text');
  },
};

function toSafeInteger(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError(`the bigint ${text} does not fit a number`);
  return value;
}

/** Arrays of arrays and nulls keep their shape. */
function toSafeIntegers(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toSafeIntegers);
  return typeof value === 'string' ? toSafeInteger(value) : value;
}
