import { contentWords } from '../words.ts';
import { firstSentence } from './guided-reply.ts';
import { latestOf, type Question, repliesOf, sharedWords, textOf } from './question.ts';

/** `match_observational`, `match_actionable`: a condition holds when the customer's latest messages share enough of its words. */
export function matchByWords(question: Question): object {
  return verdicts(question, (holds) => ({ applies: holds }));
}

/** `match_low`: the same, without reasons. */
export function matchLowByWords(question: Question): object {
  const words = contentWords(latestOf(question));
  return { verdicts: question.items.map((item) => ({ id: item['id'], applies: sharedWords(textOf(item, 'condition'), words).holds })) };
}

/** `match_again`: each mention is a new reason. */
export function matchAgainByWords(question: Question): object {
  return verdicts(question, (holds) => ({ condition_met_again: holds, action_wasnt_taken: false, should_reapply: holds }));
}

/** `match_customer_dependent`: a question of the customer answers nothing. */
export function matchCustomerDependentByWords(question: Question): object {
  const isAsking = latestOf(question).trimEnd().endsWith('?');
  return verdicts(question, (holds) => ({
    condition_still_met: true,
    customer_should_reply: isAsking,
    condition_met_again: holds,
    action_should_reapply: holds,
    should_apply: isAsking || holds,
  }));
}

/** `judge_applied`: an action is done when the agent's last messages share enough of its words. */
export function judgeAppliedByWords(question: Question): object {
  const words = contentWords(repliesOf(question));
  return { verdicts: question.items.map((item) => ({ id: item['id'], ...reasonOf(textOf(item, 'action'), words, 'reply', (holds) => ({ applies: holds })) })) };
}

/** `check_reply`: a policy is followed when the reply has words of its first sentence, which is what the script says of it. */
export function checkReplyByWords(question: Question): object {
  const words = contentWords(question.lines.map((line) => textOf(line, 'reply')).join('\n'));
  return {
    verdicts: question.items.map((item) => {
      const action = textOf(item, 'action');
      return { id: item['id'], ...reasonOf(firstSentence(action) ?? action, words, 'reply', (holds) => ({ followed: holds })) };
    }),
  };
}

/** `disambiguate`: the options that share words with the message are possible; if none does, all are. */
export function disambiguateByWords({ items: [source = {}, ...options], lines }: Question): object {
  const words = contentWords(latestOf({ items: [], lines }));
  const named = options.filter((option) => sharedWords(textOf(option, 'option'), words).holds);
  const possible = named.length > 0 ? named : options;
  const isMet = sharedWords(textOf(source, 'condition'), words).holds;
  const isAmbiguous = isMet && possible.length > 1;
  return {
    rationale: isAmbiguous ? 'The message fits several options.' : 'The message leaves nothing open.',
    ambiguity_condition_met: isMet,
    disambiguation_requested: false,
    customer_resolved: named.length === 1,
    is_ambiguous: isAmbiguous,
    options: options.map((option) => ({ id: option['id'], is_possible: possible.includes(option) })),
    clarification_action: isAmbiguous ? `Ask the customer which of these they mean: ${possible.map((option) => textOf(option, 'option')).join('; ')}` : '',
  };
}

function verdicts(question: Question, findings: (holds: boolean) => object): object {
  const words = contentWords(latestOf(question));
  return {
    verdicts: question.items.map((item) => ({ id: item['id'], ...reasonOf(textOf(item, 'condition'), words, 'latest message', findings) })),
  };
}

function reasonOf(text: string, words: ReadonlySet<string>, what: string, findings: (holds: boolean) => object): object {
  const { holds, shared } = sharedWords(text, words);
  const rationale = shared.length === 0 ? `The ${what} has none of its words.` : `The ${what} has the words ${shared.join(', ')}.`;
  return { rationale, ...findings(holds) };
}
