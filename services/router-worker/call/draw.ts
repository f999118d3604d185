/** FNV-1a, 32 bits. */
const OFFSET = 0x811c9dc5;
const PRIME = 0x01000193;
const TWO_TO_32 = 2 ** 32;

/** Draws that can be repeated: equal seeds and names give equal keys, whatever else is drawn. */
export class SeededDraw {
  readonly #seed: number;

  constructor(seed: string) {
    this.#seed = hashed(OFFSET, seed);
  }

  /**
   * A key of the weighted draw without replacement: in ascending order of keys, each place is taken with a probability proportional to the weights of those
   * that are left (Efraimidis and Spirakis, 2006).
   * @param weight above 0
   */
  keyOf(name: string, weight: number): number {
    const uniform = (mixed(hashed(this.#seed, name)) + 1) / (TWO_TO_32 + 1);
    return -Math.log(uniform) / weight;
  }
}

function hashed(from: number, text: string): number {
  let hash = from;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), PRIME);
  return hash;
}

/** The last characters alone would hardly change the high bits. The finaliser of MurmurHash3. */
function mixed(hash: number): number {
  let bits = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
