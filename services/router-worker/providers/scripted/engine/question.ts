import { contentWords } from '../words.ts';

/** A question of the agent's engine, as far as the script reads it. */
export interface Question {
  /** Lines between the fences of the last message. */
  items: readonly Record<string, unknown>[];
  /** Of the conversation, oldest first. */
  lines: readonly Record<string, unknown>[];
}

const FENCE = /^=====[^\s=]+=====$/;

/**
 * Reads what a question shows.
 * @param earlier the user messages before the last one
 */
export function readQuestion(earlier: readonly string[], last: string): Question {
  return { items: linesIn(last), lines: earlier.flatMap(linesIn) };
}

/** The lines of JSON between fences. A cut-off line is skipped. */
export function linesIn(text: string): Record<string, unknown>[] {
  const lines: Record<string, unknown>[] = [];
  let fence: string | null = null;
  for (const line of text.split('\n')) {
    if (line === fence) fence = null;
    else if (fence === null && FENCE.test(line)) fence = line;
    else if (fence !== null) lines.push(...objectIn(line));
  }
  return lines;
}

function objectIn(line: string): Record<string, unknown>[] {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? [{ ...value }] : [];
  } catch {
    return [];
  }
}

/** What the customer wrote since the agent's last message, or wrote last. */
export function latestOf({ lines }: Question): string {
  const texts: string[] = [];
  for (const { from, text } of lines.toReversed()) {
    if (from === 'customer' && typeof text === 'string') texts.unshift(text);
    else if (from !== undefined && texts.length > 0) break;
  }
  return texts.join('\n');
}

/** What the agent wrote since the customer's last message. */
export function repliesOf({ lines }: Question): string {
  const texts: string[] = [];
  for (const { from, text } of lines.toReversed()) {
    if (from === 'customer') break;
    if (from === 'agent' && typeof text === 'string') texts.unshift(text);
  }
  return texts.join('\n');
}

export function textOf(item: Record<string, unknown>, field: string): string {
  const value = item[field];
  return typeof value === 'string' ? value : '';
}

/** Of conditions: in most of them, and in no topic. */
const ROLE_WORDS = contentWords(
  'customer user client agent assistant person someone wants wish wishes asks asking says saying mentions message talks conversation latest',
);

/** A third of the words is enough: "the customer wants a refund or their money back" holds for "refund, please". */
const MIN_SHARE = 1 / 3;

/** An alternative of which every word is there is enough: "the machine leaks" of "the machine leaks, smokes or smells burnt". */
const ALTERNATIVES = /,|;|\bor\b/;
/** A single word is no alternative by itself. */
const MIN_WORDS = 2;

/** Whether a text shares enough words with a condition, and which. */
export function sharedWords(condition: string, words: ReadonlySet<string>): { holds: boolean; shared: string[] } {
  const wanted = wordsOf(condition);
  const shared = wanted.filter((word) => words.has(word));
  const isMet = (alternative: string[]) => alternative.length >= MIN_WORDS && alternative.every((word) => words.has(word));
  const holds = shared.length > 0 && (shared.length >= wanted.length * MIN_SHARE || condition.split(ALTERNATIVES).map(wordsOf).some(isMet));
  return { holds, shared };
}

function wordsOf(condition: string): string[] {
  return [...contentWords(condition)].filter((word) => !ROLE_WORDS.has(word));
}
