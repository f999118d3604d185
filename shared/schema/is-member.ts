import { canonicalJson } from '../config/canonical-json.ts';
import type { StepBudget } from './step-budget.ts';

/** Per comparison, besides the characters written. */
const STEPS_PER_COMPARISON = 8;
/** The worst case is small objects with unsorted names. */
const STEPS_PER_WRITTEN_CHAR = 2;

/** Returns the test for `enum` and `const`: a look-up by canonical JSON. Comparing with each member would take the product of both sizes. */
export function isMember(members: readonly unknown[], steps: StepBudget): (value: unknown) => boolean {
  const texts = new Set(members.map((member) => canonicalJson(member)));
  let longest = 0;
  for (const { length } of texts) longest = Math.max(longest, length);
  return (value) => {
    const chars = charsOf(value, longest, steps);
    steps.take(STEPS_PER_COMPARISON + STEPS_PER_WRITTEN_CHAR * Math.min(chars, longest));
    return chars <= longest && texts.has(canonicalJson(value));
  };
}

/** A lower bound of the length of a value's JSON. Stops beyond `enough`: a longer value equals no member. */
function charsOf(value: unknown, enough: number, steps: StepBudget): number {
  if (typeof value === 'string') return value.length + 2;
  if (typeof value !== 'object' || value === null) return 1;
  let chars = 2;
  if (Array.isArray(value)) {
    if (value.length > enough) return value.length;
    for (const item of value) {
      chars += charsOf(item, enough - chars, steps);
      if (chars > enough) break;
    }
    return chars;
  }
  steps.spendNames(value, 0, 0);
  for (const [name, inner] of Object.entries(value)) {
    chars += name.length + 3 + charsOf(inner, enough - chars, steps);
    if (chars > enough) break;
  }
  return chars;
}
