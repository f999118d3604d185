import { endianness } from 'node:os';
import type { EmbeddingCall } from '#shared/contracts/router/embedding-call.ts';

/** Of the vectors of one call, as JSON: 2,048 of 1,536 dimensions as numbers fit, and so does their frame on the bus. */
export const MAX_VECTOR_CHARS = 48 * 1024 * 1024;

/** Of a 32-bit float: so many distinguish any two of them. */
const DIGITS = 9;
/** Sign, digits, zeros and comma of a value of a vector of length 1; few have more. */
const CHARS_PER_NUMBER = 16;
const BYTES_PER_FLOAT = 4;
const QUOTES = 2;

/** Characters of a vector as JSON: of numbers about the most, of base64 exactly. */
export function vectorChars(dimensions: number, format: EmbeddingCall['format']): number {
  return format === 'float' ? dimensions * CHARS_PER_NUMBER : Math.ceil((dimensions * BYTES_PER_FLOAT) / 3) * 4 + QUOTES;
}

/** JSON of a vector: numbers, or base64 of the floats in little endian. */
export function vectorText(vector: Float32Array, format: EmbeddingCall['format']): string {
  return format === 'float' ? numbersOf(vector) : `"${littleEndian(vector).toString('base64')}"`;
}

function numbersOf(vector: Float32Array): string {
  let text = '[';
  for (let index = 0; index < vector.length; index += 1) text += `${index === 0 ? '' : ','}${Number((vector[index] as number).toPrecision(DIGITS))}`;
  return `${text}]`;
}

function littleEndian(vector: Float32Array): Buffer {
  const bytes = Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength);
  return endianness() === 'LE' ? bytes : Buffer.from(bytes).swap32();
}
