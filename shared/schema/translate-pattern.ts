/** Limit of a pattern's length: translating is linear in it. */
const MAX_PATTERN_CHARS = 4_096;
/** Nesting of groups, and so depth of recursion. */
const MAX_GROUP_DEPTH = 100;
/**
 * Characters of a pattern, repetitions expanded. The program has one or two instructions for each; one of a thousand takes 10–25 ms to
 * make. re2 itself expands at most 1,000 repetitions.
 */
const MAX_POSITIONS = 1_000;

interface Translated {
  re2: string;
  /** Characters, with repetitions expanded. */
  positions: number;
  /** Character ranges in its classes. */
  ranges: number;
}

/** Its message is a predicate with the pattern as subject: why it can't be matched in linear time. */
export class UnsupportedPattern extends Error {}

/**
 * Translates a JavaScript expression (flag `u`) into re2's syntax. The two differ silently: in re2 `\s` is ASCII only, `.` matches all but
 * a newline, `[[:alpha:]]` is one class, and `\uXXXX` is no escape. So only letters and digits are copied. Capturing and laziness are
 * dropped, since neither affects whether a text matches.
 *
 * @param pattern valid for `new RegExp(pattern, 'u')`
 * @throws UnsupportedPattern for look-around, back-references, and patterns that are too large
 */
export function translatePattern(pattern: string): Translated {
  if (pattern.length > MAX_PATTERN_CHARS) throw new UnsupportedPattern(`must not be longer than ${MAX_PATTERN_CHARS} characters`);
  return new Translator(pattern).translate();
}

/** JavaScript's `\s`, and its complement. */
const SPACES = '\\t-\\r\\x{20}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}';
const NO_SPACES =
  '\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{fefe}\\x{ff00}-\\x{10ffff}';
const CONTROLS: Readonly<Record<string, number>> = { t: 9, n: 10, v: 11, f: 12, r: 13, 0: 0 };
/** Ranges in the largest Unicode tables, those of letters. */
const UNICODE_TABLE_RANGES = 700;
const CLASS_RANGES = 12;

/** General categories by long name; re2 knows the short ones. */
const CATEGORIES: Readonly<Record<string, string>> = {
  Any: 'Any',
  ASCII: 'Ascii',
  Assigned: 'Assigned',
  Other: 'C',
  Control: 'Cc',
  Format: 'Cf',
  Unassigned: 'Cn',
  Private_Use: 'Co',
  Surrogate: 'Cs',
  Letter: 'L',
  Cased_Letter: 'LC',
  Lowercase_Letter: 'Ll',
  Modifier_Letter: 'Lm',
  Other_Letter: 'Lo',
  Titlecase_Letter: 'Lt',
  Uppercase_Letter: 'Lu',
  Mark: 'M',
  Spacing_Mark: 'Mc',
  Enclosing_Mark: 'Me',
  Nonspacing_Mark: 'Mn',
  Number: 'N',
  Decimal_Number: 'Nd',
  Letter_Number: 'Nl',
  Other_Number: 'No',
  Punctuation: 'P',
  Connector_Punctuation: 'Pc',
  Dash_Punctuation: 'Pd',
  Close_Punctuation: 'Pe',
  Final_Punctuation: 'Pf',
  Initial_Punctuation: 'Pi',
  Other_Punctuation: 'Po',
  Open_Punctuation: 'Ps',
  Symbol: 'S',
  Currency_Symbol: 'Sc',
  Modifier_Symbol: 'Sk',
  Math_Symbol: 'Sm',
  Other_Symbol: 'So',
  Separator: 'Z',
  Line_Separator: 'Zl',
  Paragraph_Separator: 'Zp',
  Space_Separator: 'Zs',
};
const SHORT_CATEGORIES = new Set(Object.values(CATEGORIES));

class Translator {
  readonly #characters: string[];
  #place = 0;
  #depth = 0;
  #ranges = 0;

  constructor(pattern: string) {
    this.#characters = [...pattern];
  }

  translate(): Translated {
    const { re2, positions } = this.#choice();
    return { re2, positions, ranges: this.#ranges };
  }

  #choice(): { re2: string; positions: number } {
    let re2 = '';
    let positions = 0;
    while (this.#place < this.#characters.length && this.#next() !== ')') {
      if (this.#take('|')) {
        re2 += '|';
        positions += 1;
        continue;
      }
      const repeated = this.#repeated(this.#atom());
      re2 += repeated.re2;
      positions += repeated.positions;
      if (positions > MAX_POSITIONS) throw new UnsupportedPattern(`must not stand for more than ${MAX_POSITIONS} characters, repetitions written out`);
    }
    return { re2, positions };
  }

  /** @param atom what a quantifier after it applies to: a group, a class or one character */
  #repeated({ re2, positions }: { re2: string; positions: number }): { re2: string; positions: number } {
    const quantifier = this.#quantifier();
    if (quantifier === null) return { re2, positions };
    this.#take('?');
    return { re2: `(?:${re2})${quantifier.re2}`, positions: Math.max(positions, 1) * quantifier.copies };
  }

  #quantifier(): { re2: string; copies: number } | null {
    for (const [re2, copies] of [
      ['*', 1],
      ['+', 1],
      ['?', 1],
    ] as const) {
      if (this.#take(re2)) return { re2, copies };
    }
    if (!this.#take('{')) return null;
    const [min = '', max] = this.#upTo('}').split(',');
    const least = Number(min);
    if (max === undefined) return { re2: `{${least}}`, copies: Math.max(least, 1) };
    if (max === '') return { re2: `{${least},}`, copies: least + 1 };
    return { re2: `{${least},${Number(max)}}`, copies: Math.max(Number(max), 1) };
  }

  #atom(): { re2: string; positions: number } {
    const character = this.#read();
    if (character === '^') return { re2: '\\A', positions: 1 };
    if (character === '$') return { re2: '\\z', positions: 1 };
    if (character === '.') return this.#set('[^\\n\\r\\x{2028}\\x{2029}]', 3);
    if (character === '[') return this.#class();
    if (character === '(') return this.#group();
    if (character === '\\') return this.#escape();
    return { re2: literal(character), positions: 1 };
  }

  #set(re2: string, ranges: number): { re2: string; positions: number } {
    this.#ranges += ranges;
    return { re2, positions: 1 };
  }

  #group(): { re2: string; positions: number } {
    if (this.#take('?') && !this.#take(':')) this.#groupName();
    this.#depth += 1;
    if (this.#depth > MAX_GROUP_DEPTH) throw new UnsupportedPattern('must not nest groups so deep');
    const { re2, positions } = this.#choice();
    this.#depth -= 1;
    this.#take(')');
    return { re2: `(?:${re2})`, positions };
  }

  #groupName(): void {
    const isBehind = this.#take('<');
    if (this.#next() === '=' || this.#next() === '!') {
      throw new UnsupportedPattern('must not look ahead or behind (?=, ?!, ?<=, ?<!), which can not be matched in linear time');
    }
    if (!isBehind) throw new UnsupportedPattern('must not change flags within');
    this.#upTo('>');
  }

  #escape(): { re2: string; positions: number } {
    const character = this.#next();
    if (character === 'b' || character === 'B') {
      this.#place += 1;
      return { re2: `\\${character}`, positions: 1 };
    }
    if (character === 'k' || /[1-9]/.test(character)) {
      throw new UnsupportedPattern('must not refer back to a group, which can not be matched in linear time');
    }
    return { re2: `[${this.#escapedMember()}]`, positions: 1 };
  }

  #class(): { re2: string; positions: number } {
    const isNegated = this.#take('^');
    let members = '';
    while (this.#place < this.#characters.length && !this.#take(']')) {
      members += this.#member();
      this.#ranges += 1;
    }
    if (members === '') return this.#set(isNegated ? '[\\x{0}-\\x{10ffff}]' : '[^\\x{0}-\\x{10ffff}]', 1);
    return { re2: `[${isNegated ? '^' : ''}${members}]`, positions: 1 };
  }

  /** A class member: one character, an escaped set, or a range. */
  #member(): string {
    const from = this.#classCharacter();
    if (typeof from === 'string') return from;
    const isRange = this.#next() === '-' && this.#characters[this.#place + 1] !== ']';
    if (!isRange) return hex(from);
    this.#place += 1;
    const to = this.#classCharacter();
    // Under flag `u` a set can't end a range.
    if (typeof to === 'string') throw new UnsupportedPattern('must be a regular expression');
    return `${hex(from)}-${hex(to)}`;
  }

  /** @returns a code point, or an escaped set */
  #classCharacter(): number | string {
    const character = this.#read();
    if (character !== '\\') return codeOf(character);
    if (this.#take('b')) return 8;
    return this.#escapedSet() ?? this.#escapedCode();
  }

  #escapedMember(): string {
    return this.#escapedSet() ?? hex(this.#escapedCode());
  }

  /** `\d`, `\w`, `\s`, `\p{…}` and their complements, for the inside of a class; null for all else, without reading it. */
  #escapedSet(): string | null {
    const character = this.#next();
    if (!'dDwWsSpP'.includes(character)) return null;
    this.#place += 1;
    this.#ranges += CLASS_RANGES;
    if (character === 's') return SPACES;
    if (character === 'S') return NO_SPACES;
    if (character !== 'p' && character !== 'P') return `\\${character}`;
    this.#ranges += UNICODE_TABLE_RANGES;
    this.#take('{');
    return `\\${character}{${propertyName(this.#upTo('}'))}}`;
  }

  #escapedCode(): number {
    const character = this.#read();
    if (character === 'c') return codeOf(this.#read()) % 32;
    if (character === 'x') return Number.parseInt(this.#digits(2), 16);
    if (character === 'u') return this.#unicodeEscape();
    return CONTROLS[character] ?? codeOf(character);
  }

  /** Under flag `u` an escaped surrogate pair is one character. */
  #unicodeEscape(): number {
    if (this.#take('{')) return Number.parseInt(this.#upTo('}'), 16);
    const unit = Number.parseInt(this.#digits(4), 16);
    const rest = this.#characters.slice(this.#place, this.#place + 6).join('');
    if (unit < 0xd800 || unit > 0xdbff || !/^\\u[dD][c-fC-F]/.test(rest)) return unit;
    this.#place += 2;
    return 0x10000 + ((unit - 0xd800) << 10) + (Number.parseInt(this.#digits(4), 16) - 0xdc00);
  }

  #digits(count: number): string {
    let text = '';
    for (let place = 0; place < count; place += 1) text += this.#read();
    return text;
  }

  #next(): string {
    return this.#characters[this.#place] ?? '';
  }

  #read(): string {
    const character = this.#next();
    this.#place += 1;
    return character;
  }

  #take(character: string): boolean {
    if (this.#next() !== character) return false;
    this.#place += 1;
    return true;
  }

  /** Reads up to the next such character, and skips that. */
  #upTo(end: string): string {
    let text = '';
    while (this.#place < this.#characters.length && this.#next() !== end) text += this.#read();
    this.#place += 1;
    return text;
  }
}

function propertyName(property: string): string {
  const [key = '', value] = property.split('=');
  const isScript = key === 'Script' || key === 'sc';
  // re2 has scripts by long name only.
  if (isScript && value !== undefined && value.length > 4) return value;
  const category = value === undefined ? key : value;
  const isCategory = value === undefined || key === 'General_Category' || key === 'gc';
  const name = CATEGORIES[category] ?? (SHORT_CATEGORIES.has(category) ? category : null);
  if (!isCategory || name === null) {
    throw new UnsupportedPattern(`must not use \\p{${property}}: of the properties of Unicode general categories and scripts (by their long names) are known`);
  }
  return name;
}

function literal(character: string): string {
  return /^[A-Za-z0-9]$/.test(character) ? character : hex(codeOf(character));
}

function codeOf(character: string): number {
  return character.codePointAt(0) ?? 0;
}

function hex(code: number): string {
  return `\\x{${code.toString(16)}}`;
}
