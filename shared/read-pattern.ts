/** Code points from one to another, both included. */
export type Range = readonly [from: number, to: number];

/** Which texts match, and in how many ways. Names of groups, captures and laziness are left out: they change no way. */
export type Expression =
  | { type: 'character'; set: readonly Range[] }
  | { type: 'sequence'; parts: Expression[] }
  | { type: 'choice'; options: Expression[] }
  | { type: 'repeat'; body: Expression; min: number; max: number };

const EMPTY: Expression = { type: 'sequence', parts: [] };
const ANY: readonly Range[] = [[0, 0x10ffff]];
const CLASSES: Readonly<Record<string, readonly Range[]>> = {
  d: [[0x30, 0x39]],
  w: [
    [0x30, 0x39],
    [0x41, 0x5a],
    [0x5f, 0x5f],
    [0x61, 0x7a],
  ],
  s: [
    [0x09, 0x0d],
    [0x20, 0x20],
    [0xa0, 0xa0],
    [0x1680, 0x1680],
    [0x2000, 0x200a],
    [0x2028, 0x2029],
    [0x202f, 0x202f],
    [0x205f, 0x205f],
    [0x3000, 0x3000],
    [0xfeff, 0xfeff],
  ],
};
const CONTROLS: Readonly<Record<string, number>> = { t: 9, n: 10, v: 11, f: 12, r: 13, 0: 0 };

/** Groups within each other. Reading recurses as deep. */
const MAX_GROUP_DEPTH = 100;

export interface Pattern {
  whole: Expression;
  /** The insides of lookarounds, which are matched on their own. */
  lookarounds: Expression[];
  /** Whether it can only match from the beginning of a text. */
  isAnchored: boolean;
  /** Whether it wants the text of a group again, which no `Expression` tells. */
  refersBack: boolean;
}

/**
 * Takes a regular expression apart.
 *
 * @param pattern what `new RegExp(pattern, 'u')` takes; for any other text the outcome means nothing
 * @returns null when its groups are nested deeper than may be
 */
export function readPattern(pattern: string): Pattern | null {
  const reader = new PatternReader(pattern);
  const whole = reader.read();
  const { lookarounds, isAnchored, refersBack, isTooDeep } = reader;
  return isTooDeep ? null : { whole, lookarounds, isAnchored, refersBack };
}

class PatternReader {
  readonly lookarounds: Expression[] = [];
  isAnchored = true;
  refersBack = false;
  isTooDeep = false;
  readonly #characters: string[];
  #place = 0;
  #depth = 0;

  constructor(pattern: string) {
    this.#characters = [...pattern];
  }

  read(): Expression {
    const options = [this.#sequence()];
    while (this.#take('|')) options.push(this.#sequence());
    return options.length === 1 ? (options[0] ?? EMPTY) : { type: 'choice', options };
  }

  #sequence(): Expression {
    const parts: Expression[] = [];
    if (this.#depth === 0 && this.#next() !== '^') this.isAnchored = false;
    while (this.#place < this.#characters.length && this.#next() !== '|' && this.#next() !== ')') parts.push(this.#repeated(this.#atom()));
    return { type: 'sequence', parts };
  }

  #repeated(body: Expression): Expression {
    const bounds = this.#bounds();
    if (bounds === null) return body;
    this.#take('?');
    return { type: 'repeat', body, ...bounds };
  }

  #bounds(): { min: number; max: number } | null {
    if (this.#take('*')) return { min: 0, max: Number.POSITIVE_INFINITY };
    if (this.#take('+')) return { min: 1, max: Number.POSITIVE_INFINITY };
    if (this.#take('?')) return { min: 0, max: 1 };
    if (!this.#take('{')) return null;
    const [min = '', max] = this.#upTo('}').split(',');
    return { min: Number(min), max: max === undefined ? Number(min) : max === '' ? Number.POSITIVE_INFINITY : Number(max) };
  }

  #atom(): Expression {
    const character = this.#read();
    if (character === '^' || character === '$') return EMPTY;
    if (character === '.') return { type: 'character', set: ANY };
    if (character === '[') return { type: 'character', set: this.#class() };
    if (character === '(') return this.#group();
    if (character === '\\') return this.#escaped();
    return literal(codeOf(character));
  }

  #group(): Expression {
    let isLookaround = false;
    if (this.#take('?')) {
      if (!this.#take(':')) {
        const isBehind = this.#take('<');
        isLookaround = this.#take('=') || this.#take('!');
        if (isBehind && !isLookaround) this.#upTo('>');
      }
    }
    this.#depth += 1;
    const body = this.#depth > MAX_GROUP_DEPTH ? this.#giveUp() : this.read();
    this.#depth -= 1;
    this.#take(')');
    if (!isLookaround) return body;
    this.lookarounds.push(body);
    return EMPTY;
  }

  /** Nothing more is read: every loop ends with the text. */
  #giveUp(): Expression {
    this.isTooDeep = true;
    this.#place = this.#characters.length;
    return EMPTY;
  }

  #escaped(): Expression {
    const character = this.#next();
    if (character === 'b' || character === 'B') {
      this.#place += 1;
      return EMPTY;
    }
    if (character === 'k' || /[1-9]/.test(character)) {
      this.refersBack = true;
      this.#place += 1;
      return EMPTY;
    }
    return { type: 'character', set: this.#escapedSet() };
  }

  /** After a backslash, in a class or outside. */
  #escapedSet(): readonly Range[] {
    const character = this.#read();
    const known = CLASSES[character] ?? null;
    if (known !== null) return known;
    const negated = CLASSES[character.toLowerCase()] ?? null;
    if (negated !== null) return complementOf(negated);
    if (character === 'p' || character === 'P') {
      // Which characters have a property is not looked up: taken for any, a pattern is refused rather too often than too seldom.
      this.#upTo('}');
      return ANY;
    }
    if (character === 'c') return single(codeOf(this.#read()) % 32);
    if (character === 'x') return single(Number.parseInt(this.#read() + this.#read(), 16));
    if (character === 'u') return single(this.#unicodeEscape());
    return single(CONTROLS[character] ?? codeOf(character));
  }

  #unicodeEscape(): number {
    if (this.#take('{')) return Number.parseInt(this.#upTo('}'), 16);
    const unit = Number.parseInt(this.#digits(4), 16);
    const isPair = unit >= 0xd800 && unit <= 0xdbff && this.#characters.slice(this.#place, this.#place + 2).join('') === '\\u';
    if (!isPair) return unit;
    this.#place += 2;
    return 0x10000 + ((unit - 0xd800) << 10) + (Number.parseInt(this.#digits(4), 16) - 0xdc00);
  }

  #class(): readonly Range[] {
    const isNegated = this.#take('^');
    const ranges: Range[] = [];
    while (this.#place < this.#characters.length && !this.#take(']')) {
      const from = this.#classMember();
      const start = from.length === 1 && from[0]?.[0] === from[0]?.[1] ? from[0]?.[0] : undefined;
      const isRange = start !== undefined && this.#next() === '-' && this.#characters[this.#place + 1] !== ']';
      if (!isRange) {
        ranges.push(...from);
        continue;
      }
      this.#place += 1;
      ranges.push([start, this.#classMember()[0]?.[1] ?? start]);
    }
    return isNegated ? complementOf(ranges) : ranges;
  }

  #classMember(): readonly Range[] {
    const character = this.#read();
    if (character !== '\\') return single(codeOf(character));
    if (this.#take('b')) return single(8);
    return this.#escapedSet();
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

  /** What stands before the next such character, which is passed over. */
  #upTo(end: string): string {
    let text = '';
    while (this.#place < this.#characters.length && this.#next() !== end) text += this.#read();
    this.#place += 1;
    return text;
  }
}

function codeOf(character: string): number {
  return character.codePointAt(0) ?? 0;
}

function literal(code: number): Expression {
  return { type: 'character', set: single(code) };
}

function single(code: number): readonly Range[] {
  return [[code, code]];
}

function complementOf(ranges: readonly Range[]): readonly Range[] {
  const gaps: Range[] = [];
  let start = 0;
  for (const [from, to] of [...ranges].sort((left, right) => left[0] - right[0])) {
    if (from > start) gaps.push([start, from - 1]);
    start = Math.max(start, to + 1);
  }
  if (start <= 0x10ffff) gaps.push([start, 0x10ffff]);
  return gaps;
}
