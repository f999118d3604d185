import pg from 'pg';

const BIGINT = 20;
const BIGINT_ARRAY: number = 1016;
const asTextArray: (text: string) => unknown = pg.types.getTypeParser(BIGINT_ARRAY, 'text');

/**
 * Column parsers of every pool, so that all drivers agree: bigint is a number, json and jsonb are parsed, timestamptz is a Date, bytea a Buffer;
 * numeric stays text, since a number would lose precision.
 * @throws RangeError from the query, for a bigint beyond the safe integers: rounding it would name another row
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

/** Keeps nested arrays and nulls. */
function toSafeIntegers(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toSafeIntegers);
  return typeof value === 'string' ? toSafeInteger(value) : value;
}
