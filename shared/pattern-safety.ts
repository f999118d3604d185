import { type Expression, type Range, readPattern } from './read-pattern.ts';

/** Characters of a pattern, counted with repetitions written out. A pattern of more can't be checked in a bounded time. */
const MAX_POSITIONS = 2_000;
/** Pairs of places that are looked at before a pattern counts as too involved: some tens of milliseconds. */
const MAX_PAIRS = 200_000;
/** The same for three places, after which a pattern is taken for a slow one. */
const MAX_TRIPLES = 100_000;
/** `x{n}` is written out up to this length, and counts as `x+` beyond. */
const MAX_WRITTEN_OUT = 200;

export interface Judgement {
  /** The rest of a sentence whose subject is the pattern; null when nothing is wrong with it. */
  problem: string | null;
  /** Whether matching is known to take no longer than in proportion to the text. Else it may take the square of that, or more. */
  isLinear: boolean;
}

/**
 * Judges a regular expression that texts from outside are to be checked against. With some the time doubles with each character of the
 * text, like `(a+)+$`. Repetitions within repetitions are fine where only one way leads through them, as in `^[a-z]+(-[a-z]+)*$`.
 *
 * The expression is read as an automaton with one state for each of its characters. It is harmful when a state leads back to itself by
 * the same text in two ways: then each round through it doubles the ways to be tried. It is slow when a text can go round in one state
 * and then in another, with the passage at any place: then there are as many ways as places.
 *
 * @param pattern a valid expression under the flag `u`
 */
export function judgePattern(pattern: string): Judgement {
  const read = readPattern(pattern);
  if (read === null) return harmful('must not nest groups so deep');
  if (read.refersBack) return harmful('must not refer back to a group, which can take very long to match');
  let isLinear = read.isAnchored && read.lookarounds.length === 0;
  for (const expression of [read.whole, ...read.lookarounds]) {
    const automaton = automatonOf(expression);
    if (automaton === null) return harmful(`must not be longer than ${MAX_POSITIONS} characters with its repetitions`);
    const verdict = verdictOn(automaton);
    if (verdict === 'ambiguous')
      return harmful('must not nest repetitions that can share a text in several ways, like (a+)+, which can take very long to match');
    if (verdict === 'unknown') return harmful('is too involved to tell how long it takes to match');
    isLinear &&= !hasPassages(automaton);
  }
  return { problem: null, isLinear };
}

function harmful(problem: string): Judgement {
  return { problem, isLinear: false };
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

/**
 * Whether some text leads from one state back to it, from there to another, and from that one back to it. Three places are followed at
 * once: from the first, the first and the second to the first, the second and the second. Also true when that can't be told in time.
 */
function hasPassages({ sets, follow }: Automaton): boolean {
  const loops = sets.map((_, state) => state).filter((state) => isOnCircle(state, follow));
  let triplesLeft = MAX_TRIPLES;
  for (const from of loops) {
    for (const to of loops) {
      if (from === to) continue;
      const seen = new Set<string>();
      const waiting: [number, number, number][] = [[from, from, to]];
      for (let places = waiting.pop(); places !== undefined; places = waiting.pop()) {
        for (const next of nextTriples(places, sets, follow)) {
          triplesLeft -= 1;
          if (triplesLeft === 0 || (next[0] === from && next[1] === to && next[2] === to)) return true;
          const key = next.join();
          if (!seen.has(key)) waiting.push(next);
          seen.add(key);
        }
      }
    }
  }
  return false;
}

function* nextTriples(
  [first, second, third]: [number, number, number],
  sets: Automaton['sets'],
  follow: Automaton['follow'],
): Generator<[number, number, number]> {
  for (const one of follow[first] ?? []) {
    for (const two of follow[second] ?? []) {
      if (one !== two && !meet(sets[one] ?? [], sets[two] ?? [])) continue;
      for (const three of follow[third] ?? []) {
        if (meet(sets[one] ?? [], sets[three] ?? []) && meet(sets[two] ?? [], sets[three] ?? [])) yield [one, two, three];
      }
    }
  }
}

function isOnCircle(state: number, follow: Automaton['follow']): boolean {
  const seen = new Set<number>();
  for (const next of follow[state] ?? [])
    search(
      next,
      (node) => [...(follow[node] ?? [])],
      seen,
      () => {},
    );
  return seen.has(state);
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
