import { cacheLimits } from './cache.ts';

/** Argument checks shared by all drivers of `Cache`. */

/** @throws RangeError */
export function checkKey(key: string): void {
  if (key.length > cacheLimits.keyCharacters) throw new RangeError(`a key of ${key.length} characters is too long for a cache`);
}

/** @throws RangeError */
export function checkKeys(keys: readonly string[]): void {
  if (keys.length > cacheLimits.keysAtOnce) throw new RangeError(`${keys.length} keys are too many for one request to a cache`);
  for (const key of keys) checkKey(key);
}

/** @throws RangeError */
export function checkValue(value: string): void {
  if (value.length > cacheLimits.valueCharacters) throw new RangeError(`a value of ${value.length} characters is too long for a cache`);
}

/** @throws RangeError */
export function checkAddend(by: number): void {
  if (!Number.isSafeInteger(by)) throw new RangeError(`${by} is no whole number that a counter can hold`);
}

/** At least 1 ms. @throws RangeError */
export function lifetimeMsOf(ttlMs: number): number {
  if (!Number.isFinite(ttlMs)) throw new RangeError(`${ttlMs} is no time to live`);
  return Math.max(1, ttlMs);
}
