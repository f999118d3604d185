import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { Glossary } from '#shared/contracts/documents/glossary.ts';
import { recentText } from '../policies/candidates.ts';
import { rankByWords } from '../policies/rank-by-words.ts';

type Term = Glossary['terms'][number];

/** So many are shown whatever the conversation is about. */
const MAX_UNRANKED = 50;
/** Of more terms those nearest to the last messages. */
const MAX_NEAREST = 20;

const rank = rankByWords(({ name, description, synonyms }: Term) => [name, ...synonyms, description].join('\n'));

/** The glossary of a prompt (rule 82), in the order of the documents. */
export function nearestTerms(terms: readonly Term[], history: readonly ConversationEvent[]): readonly Term[] {
  if (terms.length <= MAX_UNRANKED) return terms;
  const nearest = new Set(rank(recentText(history), terms).slice(0, MAX_NEAREST));
  return terms.filter((term) => nearest.has(term));
}
