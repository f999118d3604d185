/** Seeded random numbers: the same seed always gives the same sequence. */
export interface Chance {
  /** At least 0, less than 1. */
  next(): number;
  /** A whole number, at least 0, less than `count`. */
  below(count: number): number;
  /** True once in so many times. */
  oneIn(count: number): boolean;
  /** @throws RangeError for an empty list */
  pick<Value>(list: readonly Value[]): Value;
}

/** Mulberry32: a few instructions, and random enough for choices. */
export function chanceOf(seed: number): Chance {
  let state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  const below = (count: number) => Math.floor(next() * count);
  return {
    next,
    below,
    oneIn: (count) => below(count) === 0,
    pick: (list) => {
      const value = list[below(list.length)];
      if (value === undefined) throw new RangeError('nothing to choose from');
      return value;
    },
  };
}
