/** Stop words. */
const STOP_WORDS = new Set(
  `a about after all also am an and any are as at be because been before being but by can can't could did do does doing don't done each else ever for from get
  gets getting give go going got had has have having he her here him his how i i'd i'll i'm i've if in into is it its just know let like long make may me mine
  more most much must my need no not now of off on once one only onto or other our ours out over please said say shall she should so some such tell than thank
  thanks that the their them then there these they thing things this those to too under until up us use used using very want was way we well were what what's
  when where which while who whom whose why will with would yes yet you your yours`.split(/\s+/),
);
const SUFFIXES = /(?:'s|ing|ed|es|s|e|ly)$/;
const MIN_STEM = 3;
/** Abbreviations aside: a mark, white space, then a capital, digit or quote. */
const SENTENCE_END = /(?<=[.!?…])\s+(?=["'“(]?[\p{Lu}\p{N}])/u;
const LIST_MARK = /^\s*(?:[-*•+]|\d{1,3}[.)])\s+/;
const MAX_HEADING_CHARS = 80;
const HEADING = /^\s*(?:#{1,6}\s+(.+?)\s*#*|\*\*(.+?)\*\*:?|([\p{Lu}][^.!?:]{0,60}):)\s*$/u;

export interface Sentence {
  text: string;
  /** Null when it stands under none. */
  heading: string | null;
  /** Of a document that was looked up, in place of instructions. */
  isDocument?: boolean;
}

/** The distinct stems of a text's words, without stop words. */
export function contentWords(text: string): Set<string> {
  const words =
    text
      .toLowerCase()
      .replaceAll('’', "'")
      .match(/[\p{L}\p{N}][\p{L}\p{N}'-]*/gu) ?? [];
  return new Set(words.filter((word) => word.length > 1 && !STOP_WORDS.has(word)).map(stem));
}

function stem(word: string): string {
  const cut = word.replace(SUFFIXES, '');
  return cut.length >= MIN_STEM ? cut : word;
}

/** Splits instructions into sentences. List items are sentences; list marks and emphasis are removed. */
export function sentencesOf(text: string): Sentence[] {
  const sentences: Sentence[] = [];
  let heading: string | null = null;
  for (const line of unwrapped(text)) {
    const titled = headingIn(line);
    if (titled !== null) {
      heading = titled;
      continue;
    }
    for (const sentence of plain(line.replace(LIST_MARK, '')).split(SENTENCE_END)) {
      if (sentence !== '') sentences.push({ text: sentence, heading });
    }
  }
  return sentences;
}

/** Lines with editor wraps joined, and lines over a list marked as headings. */
function unwrapped(text: string): string[] {
  const lines: string[] = [];
  let joins = false;
  const given = text.split('\n');
  for (const [index, line] of given.entries()) {
    const isTitle = headingIn(line) !== null;
    if (!isTitle && isOverList(line, given[index + 1] ?? '')) {
      lines.push(`# ${line.trim().replace(/:$/, '')}`);
      joins = false;
      continue;
    }
    const isBreak = line.trim() === '' || LIST_MARK.test(line) || isTitle;
    if (joins && !isBreak) lines.push(`${lines.pop() ?? ''} ${line.trim()}`);
    else if (line.trim() !== '') lines.push(line);
    joins = line.trim() !== '' && !isTitle;
  }
  return lines;
}

function isOverList(line: string, next: string): boolean {
  return line.length <= MAX_HEADING_CHARS && /[^\s.!?,;]\s*$/.test(line) && !LIST_MARK.test(line) && LIST_MARK.test(next);
}

function headingIn(line: string): string | null {
  const titled = line.length > MAX_HEADING_CHARS ? null : HEADING.exec(line);
  return titled === null ? null : plain(titled[1] ?? titled[2] ?? titled[3] ?? '');
}

function plain(text: string): string {
  return text
    .replaceAll(/[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}/g, '')
    .replaceAll(/\s+/g, ' ')
    .trim();
}
