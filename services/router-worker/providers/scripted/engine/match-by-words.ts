import { contentWords } from '../words.ts';
import { latestOf, type Question, sharedWords, textOf } from './question.ts';

/** `match_observational`, `match_actionable`: a condition holds when the customer's latest messages share enough of its words. */
export function matchByWords(question: Question): object {
  const words = contentWords(latestOf(question));
  const verdicts = question.items.map((item) => {
    const { holds, shared } = sharedWords(textOf(item, 'condition'), words);
    const rationale = shared.length === 0 ? 'The latest message shares no word with the condition.' : `The latest message has the words ${shared.join(', ')}.`;
    return { id: item['id'], rationale, applies: holds };
  });
  return { verdicts };
}
