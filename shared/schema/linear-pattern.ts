import { RE2JS, RE2JSException } from 're2js';
import { translatePattern, UnsupportedPattern } from './translate-pattern.ts';

/**
 * A program with this many positions has at most 1,024 DFA states. All are cached, so that a character costs one look-up. States of larger
 * programs may exceed re2's memory; a character then costs a walk through the program (NFA).
 */
const MAX_SMALL_POSITIONS = 10;
/** Class ranges that cost as much as one instruction: each DFA state has a table with an entry per range. */
const RANGES_PER_INSTRUCTION = 64;

/** A table look-up takes 50 ns per character, and 100 ns if the pattern's classes have more ranges than this: `\p{L}` has hundreds. */
const MAX_QUICK_RANGES = 64;
const STEPS_PER_LOOKED_UP_CHAR = { quick: 1.5, slow: 3 };
/** NFA: with many active positions an instruction costs some 100 ns per character. */
const STEPS_PER_INSTRUCTION = 2;

/** A regular expression that is matched in time linear in the text's length. */
export interface LinearPattern {
  /** As `RegExp.test`: whether some part of the text matches. */
  test(text: string): boolean;
  /** Cost of matching a text of this length, in steps of a `StepBudget`. */
  stepsFor(chars: number): number;
  /** Instructions of its program: the cost of making it. */
  size: number;
}

/** In addition to the look-up. */
const STEPS_PER_COUNTED_CHAR = 0.5;

/** Matches patterns like `^[a-z]{1,4000}$`: one repeated class, anchored at both ends. */
const COUNTED_CLASS = /^\^(\[(?:[^\]\\]|\\.)*\]|\.|\\[dDwWsS])\{(\d+)(,?)(\d*)\}\??\$$/su;

/**
 * Compiles a JavaScript expression with re2, which matches in a single pass. V8 backtracks, in exponential time at worst.
 *
 * @param flags with `i` upper and lower case match alike
 * @returns `problem`: why the pattern is refused, as a predicate
 */
export function linearPattern(pattern: string, flags: string): LinearPattern | { problem: string } {
  try {
    // The syntax is JavaScript's: refuses what only re2 would accept.
    new RegExp(pattern, flags);
    const caseFlag = flags.includes('i') ? RE2JS.CASE_INSENSITIVE : 0;
    return countedClass(pattern, caseFlag) ?? programOf(pattern, caseFlag);
  } catch (error) {
    if (error instanceof UnsupportedPattern) return { problem: error.message };
    if (error instanceof SyntaxError) return { problem: 'must be a regular expression' };
    if (error instanceof RE2JSException) return { problem: `must be an expression that re2 takes (${error.message})` };
    throw error;
  }
}

function programOf(pattern: string, caseFlag: number): LinearPattern {
  const { re2, positions, ranges } = translatePattern(pattern);
  const program = RE2JS.compile(RE2JS.translateRegExp(re2), caseFlag);
  const size = program.programSize() + Math.ceil(ranges / RANGES_PER_INSTRUCTION);
  // One-pass: at each character only one alternative is possible.
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

/** Counts the repetitions of a single class instead of expanding them; null for other patterns. */
function countedClass(pattern: string, caseFlag: number): LinearPattern | null {
  const [, member, min, comma, max] = COUNTED_CLASS.exec(pattern) ?? [];
  if (member === undefined) return null;
  const least = Number(min);
  const most = comma === '' ? least : max === '' ? Number.POSITIVE_INFINITY : Number(max);
  const { test, stepsFor, size } = programOf(`^${member}*$`, caseFlag);
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
