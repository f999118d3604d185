import { tier } from '../helpers/tier.ts';

/** Each planted fault has to be detected within this many schedules. */
export const WITHIN = 2_000;

/**
 * The seeds at which a planted fault is looked for, in order. The deep tier begins with the first; the others begin with the one that detected it
 * last, so that a fault takes one schedule, and search only when a change of the product has moved it.
 */
export function seedsToTry(caughtAt: number): number[] {
  const all = Array.from({ length: WITHIN }, (_, index) => index + 1);
  return tier === 'deep' ? all : [caughtAt, ...all.filter((seed) => seed !== caughtAt)];
}
