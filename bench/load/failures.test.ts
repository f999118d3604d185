import { expect, it } from 'vitest';
import { Failures } from './failures.mjs';

it('counts failures by what they have in common, the most frequent first', () => {
  const failures = new Failures();
  for (let n = 0; n < 3; n += 1) failures.add(new Error(`502 for gen-01KA${n}0000000000000000, after ${1_000 + n} ms`));
  for (const status of [503, 503, 503, 503, 504]) failures.add(`${status} overloaded`);

  expect(failures.count).toBe(8);
  expect(failures.messages).toEqual(['4 × 503 overloaded', '3 × 502 for gen-01KA00000000000000000, after 1000 ms', '1 × 504 overloaded']);
});
