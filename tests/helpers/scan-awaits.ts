/**
 * Why an await needs no fail point. In the sources, at the end of the await's line or on the line above:
 *
 *     // no fail point: reads                         one await; the word is a key of this table
 *     // no fail point: reads (2)                     two awaits in a row, of one block, with no fail point between them
 *     // no fail point, because the process ends      one await, whose reason no other has
 */
export const reasons = {
  reads: 'it only reads: the state is the same before it and behind it',
  inside: 'what it changes has fail points of its own, where it is changed',
  caller: 'its caller has the fail point, right behind it',
  waits: 'it waits for other work of this process, where the fail points are',
  pauses: 'a pause before a retry or the next poll: no state changes',
  stops: 'it ends what ends with the process anyway',
  initialises: 'at a start, before this host owns a partition; each statement leaves alone what exists',
  returns: 'it returns an item to the queue, as the end of a dead worker’s lease does',
  'dead-letters': 'a dead letter is stored once, however often its item is delivered; the item is settled behind it',
  requests: 'a request that changes nothing at the server',
  refreshes: 'a row that the next answer of the server overwrites',
} as const satisfies Record<string, string>;

export interface AwaitScan {
  /** How many there are of `await`, `for await`, `.then(` and `.dispatch(`, which changes state outside likewise. */
  awaits: number;
  /** The names of the fail points. */
  points: string[];
  /** The keys of `reasons` that the comments name. */
  named: string[];
  /** Violations, each with its line. */
  faults: string[];
}

/**
 * Finds the awaits of a formatted source that have neither a fail point nor a comment. A fail point covers one await: the one right before it
 * in its block, or else the one right behind it. So what is added behind a covered await needs a fail point or a reason of its own.
 */
export function scanAwaits(source: string): AwaitScan {
  const { lines, comments } = splitComments(source);
  const places = lines.flatMap(placesOn);
  const awaits = places.filter(({ kind }) => kind === 'await');
  const points = places.filter(({ kind }) => kind === 'point');
  const markers = comments.flatMap((comment) => markerOf(comment, lines) ?? []);
  const pairs = points.map((point) => ({ point, beside: besidePoint(point, places, lines) }));
  const covers = markers.map((marker) => ({ marker, covered: coveredBy(marker, places, lines) }));
  const times = (one: Location) => Number(pairs.some(({ beside }) => beside === one)) + covers.filter(({ covered }) => covered.includes(one)).length;
  return {
    awaits: awaits.length,
    points: points.map(({ text }) => text),
    named: markers.flatMap(({ name }) => name ?? []),
    faults: [
      ...awaits.filter((one) => times(one) === 0).map(({ line, text }) => `${line}: no fail point and no reason: ${text}`),
      ...awaits.filter((one) => times(one) > 1).map(({ line, text }) => `${line}: more than one fail point or reason: ${text}`),
      ...pairs.filter(({ beside }) => beside === null).map(({ point }) => `${point.line}: beside no await: ${point.text}`),
      ...markers.filter(({ count }) => count === null).map(({ line, text }) => `${line}: no reason of the table: ${text}`),
      ...covers
        .filter(({ marker, covered }) => covered.length < (marker.count ?? 0))
        .map(({ marker: { line, text } }) => `${line}: covers too few awaits: ${text}`),
    ],
  };
}

/** A line without its comments. */
interface Line {
  /** From 1. */
  line: number;
  text: string;
  /** How far its code is indented; null where there is none, and inside a template literal. */
  indent: number | null;
}

interface Location {
  kind: 'await' | 'point';
  line: number;
  /** Of an await, up to the end of its line or the next place on it; of a fail point, its name. */
  text: string;
}

interface Comment {
  line: number;
  text: string;
}

interface Marker extends Comment {
  /** The line whose awaits it is about. */
  target: number;
  /** How many of them; null when the comment does not have the form, or names no row of the table. */
  count: number | null;
  name: string | null;
}

const COMMENTS_AND_STRINGS = /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/g;
const LOCATIONS = /\bfor\s+await\b|\bawait\b|\.then\(|\.dispatch\(|\bfailPoint\('([^']*)'\)/g;
const MARKER = /^\/\/ no fail point\b/i;
const NAMED = /^\/\/ no fail point: ([a-z-]+)(?: \(([2-9])\))?$/;
const IN_WORDS = /^\/\/ no fail point, because \S+ \S.*$/;

function splitComments(source: string): { lines: Line[]; comments: Comment[] } {
  const comments: Comment[] = [];
  const inTemplate = new Set<number>();
  const code = source.replaceAll(COMMENTS_AND_STRINGS, (found, at: number) => {
    const line = source.slice(0, at).split('\n').length;
    const further = found.split('\n').length - 1;
    if (found.startsWith('`')) for (let next = 1; next <= further; next += 1) inTemplate.add(line + next);
    if (!found.startsWith('/')) return found;
    if (further === 0) comments.push({ line, text: found });
    return found.replaceAll(/[^\n]/g, ' ');
  });
  const lines = code.split('\n').map((text, index) => {
    const indent = text.trim() === '' || inTemplate.has(index + 1) ? null : text.search(/\S/);
    return { line: index + 1, text, indent };
  });
  return { lines, comments };
}

function placesOn({ text, line }: Line): Location[] {
  const found = [...text.matchAll(LOCATIONS)];
  return found.map((match, at) => {
    const [, name] = match;
    if (name !== undefined) return { kind: 'point', line, text: name };
    return { kind: 'await', line, text: text.slice(match.index, found[at + 1]?.index).trim() };
  });
}

/** Null for every other comment. */
function markerOf({ line, text }: Comment, lines: readonly Line[]): Marker | null {
  if (!MARKER.test(text)) return null;
  // On a line of its own: about the next line that has code.
  const target = lines.slice(line - 1).find(({ indent }) => indent !== null)?.line ?? line;
  const [, name, count = '1'] = NAMED.exec(text) ?? [];
  if (name !== undefined && Object.hasOwn(reasons, name)) return { line, text, target, count: Number(count), name };
  return { line, text, target, count: IN_WORDS.test(text) ? 1 : null, name: null };
}

function besidePoint(point: Location, places: readonly Location[], lines: readonly Line[]): Location | null {
  const at = places.indexOf(point);
  const [before, after] = [places[at - 1], places[at + 1]];
  if (before?.kind === 'await' && isOneBlock(before, point, point, lines)) return before;
  return after?.kind === 'await' && isOneBlock(point, after, point, lines) ? after : null;
}

function coveredBy({ target, count }: Marker, places: readonly Location[], lines: readonly Line[]): Location[] {
  const at = places.findIndex(({ kind, line }) => kind === 'await' && line === target);
  const [first] = places.slice(at);
  if (at < 0 || first === undefined) return [];
  const row = places.slice(at, at + (count ?? 1));
  const end = row.findIndex((index) => index.kind !== 'await' || !isOneBlock(first, index, first, lines));
  return end < 0 ? row : row.slice(0, end);
}

/** Whether no line behind the first, up to the last, is indented less than the one whose block it is. */
function isOneBlock(first: Location, last: Location, own: Location, lines: readonly Line[]): boolean {
  const least = lines[own.line - 1]?.indent ?? 0;
  return lines.slice(first.line, last.line).every(({ indent }) => indent === null || indent >= least);
}
