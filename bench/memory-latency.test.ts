import fc from 'fast-check';
import { expect, it } from 'vitest';
import { cycleOf, memoryLatencyNs } from './memory-latency.mjs';

const WORDS_PER_LINE = 16;

it('reads each cache line once before it returns to the first', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 2, max: 200 }),
      fc.array(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), { minLength: 200, maxLength: 200 }),
      (lines, draws) => {
        let drawn = 0;
        const next = cycleOf(lines, () => draws[drawn++] ?? 0);
        const read = new Set<number>();
        for (let at = 0; !read.has(at); at = next[at] ?? -1) read.add(at);
        expect(read.size).toBe(lines);
        expect([...read].every((at) => at % WORDS_PER_LINE === 0)).toBe(true);
      },
    ),
  );
});

it('measures a read', () => {
  expect(memoryLatencyNs()).toBeGreaterThan(0);
});
