import { canonicalJson } from '../config/canonical-json.ts';
import type { StepBudget } from './step-budget.ts';

/** Of one comparison, besides the characters that are written. */
const STEPS_PER_COMPARISON = 8;
/** Of those the most are found in small objects whose names are out of order. */
const STEPS_PER_WRITTEN_CHAR = 2;

/**
 * Makes the test whether a value equals one of several. They are looked up by their canonical JSON: comparing a value with each of them
 * takes the product of both numbers.
 */
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

/** The least number of characters that a value's JSON has. Stops beyond `enough`: what is longer than all members equals none. */
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
