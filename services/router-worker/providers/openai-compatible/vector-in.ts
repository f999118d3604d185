import { endianness } from 'node:os';

const BYTES_PER_FLOAT = 4;

/** 32-bit floats, little endian, in base64; null: it is none, or not of whole floats. */
export function vectorIn(base64: string): Float32Array | null {
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.length === 0 || bytes.length % BYTES_PER_FLOAT !== 0 || bytes.length !== lengthOf(base64)) return null;
  const vector = new Float32Array(bytes.length / BYTES_PER_FLOAT);
  Buffer.from(vector.buffer).set(endianness() === 'LE' ? bytes : bytes.swap32());
  return vector;
}

/** Node skips characters that are no base64, so that the length alone shows them. */
function lengthOf(base64: string): number {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0;
  return Math.floor(((base64.length - padding) * 3) / 4);
}
