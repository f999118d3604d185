import { RE2JS, RE2JSException } from 're2js';
import { translatePattern, UnsupportedPattern } from './translate-pattern.ts';

/**
 * A program with at most so many characters has at most 1,024 sets of places to be in. They are all kept, so that each character of a
 * text costs one look-up. Those of larger programs may not fit into re2's memory; then each character costs a walk through the program.
 */
const MAX_SMALL_POSITIONS = 10;
/** Ranges of a class that cost as much as one more instruction: a set of places has a table with an entry for each. */
const RANGES_PER_INSTRUCTION = 64;

/** A character that is looked up in a table takes 50 ns, and 100 ns where the pattern's classes have more ranges than this: `\p{L}` has hundreds. */
const MAX_QUICK_RANGES = 64;
const STEPS_PER_LOOKED_UP_CHAR = { quick: 1.5, slow: 3 };
/** Where a program has many places in hand, an instruction costs some 100 ns for each character. */
const STEPS_PER_INSTRUCTION = 2;

/** A regular expression that is matched in time proportional to the text's length, whatever the text is. */
export interface LinearPattern {
  /** As `RegExp.test`: whether some part of the text matches. */
  test(text: string): boolean;
  /** What it costs to match a text of so many characters, in steps of a `StepBudget`. */
  stepsFor(chars: number): number;
  /** Instructions of its program, what it costs to make it. */
  size: number;
}

/** Besides being looked up. */
const STEPS_PER_COUNTED_CHAR = 0.5;

/** `^[a-z]{1,4000}$`: so many characters of one class, from the beginning to the end. */
const COUNTED_CLASS = /^\^(\[(?:[^\]\\]|\\.)*\]|\.|\\[dDwWsS])\{(\d+)(,?)(\d*)\}\??\$$/su;

/**
 * Compiles an expression of JavaScript with re2, which tries all ways at once and goes through the text but one time. V8 tries one way
 * after the other, and their number may double with each character.
 *
 * @returns the rest of a sentence whose subject is the pattern when it can not be used
 */
export function linearPattern(pattern: string, flags: string): LinearPattern | { problem: string } {
  try {
    // JavaScript's syntax holds: what V8 does not take is no pattern, even if re2 would.
    new RegExp(pattern, flags);
    return countedClass(pattern) ?? programOf(pattern);
  } catch (error) {
    if (error instanceof UnsupportedPattern) return { problem: error.message };
    if (error instanceof SyntaxError) return { problem: 'must be a regular expression' };
    if (error instanceof RE2JSException) return { problem: `must be an expression that re2 takes (${error.message})` };
    throw error;
  }
}

function programOf(pattern: string): LinearPattern {
  const { re2, positions, ranges } = translatePattern(pattern);
  const program = RE2JS.compile(RE2JS.translateRegExp(re2));
  const size = program.programSize() + Math.ceil(ranges / RANGES_PER_INSTRUCTION);
  // re2 goes through the text with one place in hand where each character leaves but one way to go on.
  const isOnePass = program.re2().onepass !== null;
  const isSmall = positions <= MAX_SMALL_POSITIONS;
  const stepsPerLookUp = STEPS_PER_LOOKED_UP_CHAR[ranges > MAX_QUICK_RANGES ? 'slow' : 'quick'];
  const stepsPerChar = isOnePass || isSmall ? stepsPerLookUp : size * STEPS_PER_INSTRUCTION;
  const stepsForTables = isSmall && !isOnePass ? size * 2 ** positions : 0;
  return {
    test: (text) => program.test(text),
    stepsFor: (chars) => 1 + chars * stepsPerChar + Math.min(stepsForTables, chars * size),
    size,
  };
}

/** Repetitions of a class alone are counted, not written out; null for all other patterns. */
function countedClass(pattern: string): LinearPattern | null {
  const [, member, min, comma, max] = COUNTED_CLASS.exec(pattern) ?? [];
  if (member === undefined) return null;
  const least = Number(min);
  const most = comma === '' ? least : max === '' ? Number.POSITIVE_INFINITY : Number(max);
  const { test, stepsFor, size } = programOf(`^${member}*$`);
  return {
    test: (text) => text.length >= least && isWithin(text, least, most) && test(text),
    stepsFor: (chars) => stepsFor(chars) + chars * STEPS_PER_COUNTED_CHAR,
    size,
  };
}

function isWithin(text: string, least: number, most: number): boolean {
  let count = 0;
  for (const _character of text) count += 1;
  return count >= least && count <= most;
}
