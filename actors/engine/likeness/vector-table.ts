/** Of a 32-bit float. */
const BYTES = 4;

/** Vectors of texts in their order, of length 1 each, so that a dot product is the cosine. */
export interface VectorTable {
  dimensions: number;
  /** Consecutive parts, each of whole vectors. */
  parts: readonly Float32Array[];
}

/**
 * Vectors behind each other, each brought to length 1. A vector of zeros stays as it is, and is near to nothing.
 * @param base64 of 32-bit floats, little endian
 * @returns null: it is not so many vectors of these dimensions, or a number is not finite
 */
export function vectorsIn(base64: string, count: number, dimensions: number): Float32Array | null {
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.byteLength !== count * dimensions * BYTES) return null;
  const vectors = new Float32Array(count * dimensions);
  for (let start = 0; start < vectors.length; start += dimensions) {
    let squares = 0;
    for (let at = start; at < start + dimensions; at += 1) {
      const value = bytes.readFloatLE(at * BYTES);
      vectors[at] = value;
      squares += value * value;
    }
    if (!Number.isFinite(squares)) return null;
    const length = Math.sqrt(squares);
    if (length > 0) for (let at = start; at < start + dimensions; at += 1) vectors[at] = (vectors[at] as number) / length;
  }
  return vectors;
}

/** Places of the vectors nearest to one, from 0, the nearest first; without those at a right angle and beyond. Of equal ones the earlier comes first. */
export function nearestIn({ dimensions, parts }: VectorTable, vector: Float32Array, count: number): number[] {
  const found: { place: number; cosine: number }[] = [];
  let place = 0;
  for (const part of parts) {
    for (let start = 0; start < part.length; start += dimensions) {
      let cosine = 0;
      for (let at = 0; at < dimensions; at += 1) cosine += (part[start + at] as number) * (vector[at] as number);
      if (cosine > 0) found.push({ place, cosine });
      place += 1;
    }
  }
  return found
    .sort((left, right) => right.cosine - left.cosine)
    .slice(0, count)
    .map((one) => one.place);
}
