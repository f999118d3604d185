import { evaluateNode, evaluatePolicy } from './evaluate.ts';
import {
  checkReplyByWords,
  disambiguateByWords,
  judgeAppliedByWords,
  matchAgainByWords,
  matchByWords,
  matchCustomerDependentByWords,
  matchLowByWords,
} from './match-by-words.ts';
import { preambleOfExamples } from './preamble-of-examples.ts';
import { queryOfMessages } from './query-of-messages.ts';
import { type Question, readQuestion } from './question.ts';
import { backtrackByWords, nextStepByWords, nodeByWords } from './routines-by-words.ts';

/** By the name of the answer's schema: the answers to the questions of the agent's engine, by shared words. */
const rules = new Map<string, (question: Question) => object>([
  ['match_observational', matchByWords],
  ['match_actionable', matchByWords],
  ['match_low', matchLowByWords],
  ['match_again', matchAgainByWords],
  ['match_customer_dependent', matchCustomerDependentByWords],
  ['disambiguate', disambiguateByWords],
  ['judge_applied', judgeAppliedByWords],
  ['check_reply', checkReplyByWords],
  ['write_preamble', preambleOfExamples],
  ['rewrite_query', queryOfMessages],
  ['next_step', nextStepByWords],
  ['check_backtrack', backtrackByWords],
  ['select_node', nodeByWords],
  ['evaluate_node', evaluateNode],
  ['evaluate_policy', evaluatePolicy],
]);

/**
 * @param earlier the user messages before the last one: the conversation
 * @param last the items
 * @returns null: no question of the engine
 */
export function answerBySchema(name: string, earlier: readonly string[], last: string): object | null {
  return rules.get(name)?.(readQuestion(earlier, last)) ?? null;
}
