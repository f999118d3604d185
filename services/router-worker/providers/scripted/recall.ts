import { contentWords, type Sentence } from './words.ts';

/** Weight of a heading's word for the sentences under it. */
const HEADING_WEIGHT = 0.7;
/** Rules for the model's conduct rank last in answers to customers. */
const CONDUCT_WEIGHT = 0.25;
/** Share of the best score from which further sentences are included. */
const NEAR_BEST = 0.6;
const MAX_SENTENCES = 3;
const MAX_SUBJECTS = 6;
/** Bounds the look-ups, whose number is words of the question times sentences. */
const MAX_ASKED_WORDS = 256;

const CONDUCT =
  /^(you are|you're|you must|you should|you may|you can|your (?:job|task|role|name|goal)|always|never|do not|don't|answer|reply|respond|be|keep|use|speak|stay|avoid|ask|write|greet|act|remember|follow|refuse|decline|make sure|only|language)\b/i;
/** Over rules for the model, in which lines may look like statements. */
const CONDUCT_HEADING = /\b(?:you|your|rules?|style|tone|conduct|behaviou?r|guidelines?|instructions?|hand over|when to|never|always)\b/i;
/** Over rules for the model alone, never quoted. */
const MANNERS_HEADING = /\b(?:how you|style|tone|manners|format)\b/i;
/** An instruction of the form "If a customer asks for x, tell them that y": y is the answer. */
const TELL_RULE = /^(?:if|when|whenever)\b.*?,\s*(?:please\s+)?(?:tell|inform|remind|assure|advise)\s+(?:them|him|her|(?:the|a)\s+\w+)\s+(?:that\s+)?(.+)$/i;

/** The sentences that match a question best, in text order; empty when none shares a word. */
export function recall(question: string, sentences: readonly Sentence[]): string[] {
  const asked = [...contentWords(question)].slice(0, MAX_ASKED_WORDS);
  // Single words are labels of what follows.
  const quotable = sentences.filter(
    ({ text, heading, isDocument }) => /\s/.test(text.trim()) && (heading === null || isDocument === true || !MANNERS_HEADING.test(heading)),
  );
  const read = quotable.map(({ text, heading, isDocument }) => ({
    text,
    words: contentWords(text),
    headingWords: contentWords(heading ?? ''),
    isConduct: isDocument !== true && (CONDUCT.test(text) || (heading !== null && CONDUCT_HEADING.test(heading))),
  }));
  const weights = new Map<string, number>();
  for (const word of asked) {
    const matches = read.filter(({ words, headingWords }) => words.has(word) || headingWords.has(word)).length;
    if (matches > 0) weights.set(word, Math.log(1 + read.length / matches));
  }
  const scored = read.map(({ text, words, headingWords, isConduct }, index) => {
    let score = 0;
    for (const [word, weight] of weights) {
      if (words.has(word)) score += weight;
      else if (headingWords.has(word)) score += weight * HEADING_WEIGHT;
    }
    return { text, isConduct, index, score: isConduct ? score * CONDUCT_WEIGHT : score };
  });
  const best = scored.reduce((most, { score }) => Math.max(most, score), 0);
  return scored
    .filter(({ score }) => score > 0 && score >= best * NEAR_BEST)
    .toSorted((left, right) => right.score - left.score)
    .slice(0, MAX_SENTENCES)
    .toSorted((left, right) => left.index - right.index)
    .map(({ text, isConduct }) => answerFrom(text, isConduct));
}

/** Topics of the instructions: headings, or else the subjects of their first statements. */
export function subjectsOf(sentences: readonly Sentence[]): string[] {
  const headings = [...new Set(sentences.flatMap(({ heading }) => (heading === null || CONDUCT_HEADING.test(heading) ? [] : [heading.toLowerCase()])))];
  if (headings.length > 0) return headings.slice(0, MAX_SUBJECTS);
  const statements = sentences.filter(({ text }) => !CONDUCT.test(text)).map(({ text }) => answerFrom(text, false));
  const openings = statements.map(
    (text) => /^[\p{L}\p{N}' -]+?(?= (?:are|is|can|may|must|take|takes|cost|costs|has|have|will|open|opens|ship|ships)\b)/u.exec(text)?.[0] ?? '',
  );
  const subjects = openings
    .map((opening) => opening.replace(/^(the|our|all|every|a|an) /i, '').toLowerCase())
    .filter((opening) => opening !== '' && opening.length <= 40);
  return [...new Set(subjects)].filter((subject) => contentWords(subject).size > 0).slice(0, MAX_SUBJECTS);
}

function answerFrom(sentence: string, isConduct: boolean): string {
  const inner = TELL_RULE.exec(sentence)?.[1];
  if (inner !== undefined) return `${inner.charAt(0).toUpperCase()}${inner.slice(1)}`;
  return isConduct ? `My instructions say: "${sentence}"` : sentence;
}
