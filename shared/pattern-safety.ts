/** Characters of a pattern, counted with repetitions written out. A pattern of more can't be checked in a bounded time. */
const MAX_POSITIONS = 2_000;
/** Pairs of places that are looked at before a pattern counts as too involved: some tens of milliseconds. */
const MAX_PAIRS = 200_000;
/** `x{n}` is written out up to this length, and counts as `x+` beyond. */
const MAX_WRITTEN_OUT = 200;

/**
 * What is wrong with a regular expression that texts from outside are to be checked against: some take time that doubles with each
 * character of the text, like `(a+)+$`. Repetitions within repetitions are fine where only one way leads through them, as in
 * `^[a-z]+(-[a-z]+)*$`.
 *
 * The expression is read as an automaton with one state for each of its characters. It is harmful when a state leads back to itself by
 * the same text in two ways: then each round through it doubles the ways to be tried.
 *
 * @param pattern a valid expression under the flag `u`
 * @returns the rest of a sentence whose subject is the pattern; null when nothing is wrong with it
 */
export function patternProblem(pattern: string): string | null {
  const reader = new PatternReader(pattern);
  const expressions = [reader.read(), ...reader.lookarounds];
  if (reader.refersBack) return 'must not refer back to a group, which can take very long to match';
  for (const expression of expressions) {
    const automaton = automatonOf(expression);
    if (automaton === null) return `must not be longer than ${MAX_POSITIONS} characters with its repetitions`;
    const verdict = verdictOn(automaton);
    if (verdict === 'ambiguous') return 'must not nest repetitions that can share a text in several ways, like (a+)+, which can take very long to match';
    if (verdict === 'unknown') return 'is too involved to tell how long it takes to match';
  }
  return null;
}

/** Code points from one to another, both included. */
type Range = readonly [from: number, to: number];

type Expression =
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

/** Reads what `new RegExp(pattern, 'u')` takes. Names, captures and laziness are left out: they change no text's ways through it. */
class PatternReader {
  /** The insides of lookarounds, which are matched on their own. */
  readonly lookarounds: Expression[] = [];
  refersBack = false;
  readonly #characters: string[];
  #place = 0;

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
    const body = this.read();
    this.#take(')');
    if (!isLookaround) return body;
    this.lookarounds.push(body);
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

interface Automaton {
  sets: (readonly Range[])[];
  /** State to the states that may follow it. */
  follow: Set<number>[];
  /** Whether a state leads to another twice over: a repetition whose body is a repetition. */
  isDoubled: boolean;
}

interface Fragment {
  isNullable: boolean;
  first: number[];
  last: number[];
}

/** Null when there would be too many states. */
function automatonOf(expression: Expression): Automaton | null {
  const automaton: Automaton = { sets: [], follow: [], isDoubled: false };
  const fits = build(expression, automaton);
  return fits === null ? null : automaton;
}

function build(expression: Expression, automaton: Automaton): Fragment | null {
  switch (expression.type) {
    case 'character': {
      const state = automaton.sets.length;
      if (state === MAX_POSITIONS) return null;
      automaton.sets.push(expression.set);
      automaton.follow.push(new Set());
      return { isNullable: false, first: [state], last: [state] };
    }
    case 'sequence':
      return buildSequence(expression.parts, automaton);
    case 'choice': {
      const whole: Fragment = { isNullable: false, first: [], last: [] };
      for (const option of expression.options) {
        const fragment = build(option, automaton);
        if (fragment === null) return null;
        whole.isNullable ||= fragment.isNullable;
        whole.first.push(...fragment.first);
        whole.last.push(...fragment.last);
      }
      return whole;
    }
    case 'repeat':
      return buildRepeat(expression, automaton);
  }
}

function buildSequence(parts: readonly Expression[], automaton: Automaton): Fragment | null {
  let whole: Fragment = { isNullable: true, first: [], last: [] };
  for (const part of parts) {
    const next = build(part, automaton);
    if (next === null) return null;
    connect(whole.last, next.first, automaton);
    whole = {
      isNullable: whole.isNullable && next.isNullable,
      first: whole.isNullable ? [...whole.first, ...next.first] : whole.first,
      last: next.isNullable ? [...whole.last, ...next.last] : next.last,
    };
  }
  return whole;
}

function buildRepeat({ body, min, max }: Extract<Expression, { type: 'repeat' }>, automaton: Automaton): Fragment | null {
  if (max === 0) return { isNullable: true, first: [], last: [] };
  const isExact = min === max && isOneWay(body);
  if (isExact && max > 1 && sizeOf(body) * max <= MAX_WRITTEN_OUT) return buildSequence(new Array<Expression>(max).fill(body), automaton);
  const once = build(body, automaton);
  if (once === null) return null;
  // A count that can vary, or is large, is taken for any count: that finds more ways than there are, never fewer.
  if (max > 1) connect(once.last, once.first, automaton);
  return { ...once, isNullable: once.isNullable || min === 0 };
}

function connect(from: readonly number[], to: readonly number[], automaton: Automaton): void {
  for (const state of from) {
    const follow = automaton.follow[state];
    for (const next of to) {
      if (follow?.has(next)) automaton.isDoubled = true;
      follow?.add(next);
    }
  }
}

/** Whether the expression always has the same length and leaves no choice. */
function isOneWay(expression: Expression): boolean {
  if (expression.type === 'character') return true;
  if (expression.type === 'sequence') return expression.parts.every(isOneWay);
  return expression.type === 'repeat' && expression.min === expression.max && isOneWay(expression.body);
}

function sizeOf(expression: Expression): number {
  if (expression.type === 'character') return 1;
  if (expression.type === 'repeat') return sizeOf(expression.body) * Math.max(1, Number.isFinite(expression.max) ? expression.max : 1);
  return (expression.type === 'sequence' ? expression.parts : expression.options).reduce((total, part) => total + sizeOf(part), 0);
}

/**
 * Follows pairs of states that the same text leads to, from each state beside itself. When such a pair of two different states leads
 * back to where it began, there are two ways around.
 */
function verdictOn({ sets, follow, isDoubled }: Automaton): 'fine' | 'ambiguous' | 'unknown' {
  if (isDoubled) return 'ambiguous';
  const count = sets.length;
  const successors = new Map<number, number[]>();
  const waiting = sets.map((_, state) => state * count + state);
  let steps = 0;
  for (let pair = waiting.pop(); pair !== undefined; pair = waiting.pop()) {
    if (successors.has(pair)) continue;
    const next: number[] = [];
    for (const left of follow[Math.floor(pair / count)] ?? []) {
      for (const right of follow[pair % count] ?? []) {
        steps += 1;
        if (steps > MAX_PAIRS) return 'unknown';
        if (left === right || meet(sets[left] ?? [], sets[right] ?? [])) next.push(left * count + right);
      }
    }
    successors.set(pair, next);
    waiting.push(...next);
  }
  return leadsBack(successors, count) ? 'ambiguous' : 'fine';
}

function leadsBack(successors: ReadonlyMap<number, readonly number[]>, count: number): boolean {
  return circlesOf(successors).some(
    (circle) => circle.some((pair) => Math.floor(pair / count) === pair % count) && circle.some((pair) => Math.floor(pair / count) !== pair % count),
  );
}

/** Groups of nodes that all lead to one another: in the order in which a search leaves the nodes, last first, the reversed graph is searched. */
function circlesOf(successors: ReadonlyMap<number, readonly number[]>): number[][] {
  const left: number[] = [];
  const seen = new Set<number>();
  for (const start of successors.keys())
    search(
      start,
      (node) => successors.get(node) ?? [],
      seen,
      (node) => left.push(node),
    );
  const predecessors = new Map<number, number[]>();
  for (const [node, next] of successors) {
    for (const target of next) {
      const sources = predecessors.get(target);
      if (sources === undefined) predecessors.set(target, [node]);
      else sources.push(node);
    }
  }
  const grouped = new Set<number>();
  const circles: number[][] = [];
  for (const start of left.reverse()) {
    const circle: number[] = [];
    search(
      start,
      (node) => predecessors.get(node) ?? [],
      grouped,
      (node) => circle.push(node),
    );
    if (circle.length > 1) circles.push(circle);
  }
  return circles;
}

/** Depth first, without recursion. `leave` is called for each node that was not seen before, once all that it leads to is left. */
function search(start: number, nextOf: (node: number) => readonly number[], seen: Set<number>, leave: (node: number) => void): void {
  if (seen.has(start)) return;
  seen.add(start);
  const path = [{ node: start, next: nextOf(start), place: 0 }];
  for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
    const target = top.next[top.place];
    top.place += 1;
    if (target === undefined) {
      leave(top.node);
      path.pop();
    } else if (!seen.has(target)) {
      seen.add(target);
      path.push({ node: target, next: nextOf(target), place: 0 });
    }
  }
}

function meet(left: readonly Range[], right: readonly Range[]): boolean {
  return left.some(([from, to]) => right.some(([otherFrom, otherTo]) => from <= otherTo && otherFrom <= to));
}
