import type { BundleBody } from '#shared/config/bundle-body.ts';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { Glossary } from '#shared/contracts/documents/glossary.ts';
import { recentText } from '../policies/candidates.ts';
import { rankByWords } from '../policies/rank-by-words.ts';

type Term = Glossary['terms'][number];

/** So many are shown whatever the conversation is about. */
const MAX_UNRANKED = 50;
/** Of more terms those nearest to a text. */
export const MAX_NEAREST = 20;

const rank = rankByWords(termText);

/** What a term is known by when a conversation is compared with it. */
export function termText({ name, description, synonyms }: Term): string {
  return [name, ...synonyms, description].join('\n');
}

/** Whether prompts have a part of the terms. */
export function isRanked(terms: readonly Term[]): boolean {
  return terms.length > MAX_UNRANKED;
}

/** Those of the manifest's glossaries. */
export function glossaryTerms({ manifest, documents }: BundleBody): Term[] {
  const { glossaries } = manifest.agent_config.context;
  return glossaries.flatMap(({ id, version }) => documents.glossaries.find((one) => one.id === id && one.version === version)?.terms ?? []);
}

/**
 * The glossary of a prompt (rule 82): the terms nearest to the last messages, in the order of the documents, and behind them those nearest to what the turn
 * has added since. So a turn's later prompts begin like its first ones.
 * @param added is called only if it is needed
 * @param chosen places of the terms nearest to the last messages by their vectors; absent: shared words decide
 */
export function nearestTerms(terms: readonly Term[], history: readonly ConversationEvent[], added: () => string, chosen?: readonly number[]): readonly Term[] {
  if (!isRanked(terms)) return terms;
  const first = chosen === undefined ? termsNearTo(terms, recentText(history)) : terms.filter((_, place) => chosen.includes(place));
  return [...new Set([...first, ...termsNearTo(terms, added())])];
}

/** Those nearest to a text, in the order of the documents. */
export function termsNearTo(terms: readonly Term[], text: string): readonly Term[] {
  if (!isRanked(terms)) return terms;
  const nearest = new Set(rank(text, terms).slice(0, MAX_NEAREST));
  return terms.filter((term) => nearest.has(term));
}
