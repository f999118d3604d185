import { contentWords } from '../words.ts';
import { latestOf, type Question, sharedWords, textOf } from './question.ts';

const COMPLETED = 'The step is completed';
const CHANGES = /\b(actually|instead|sorry|wrong|mistake|mistaken|changed my mind|go back|start over|again|another|second)\b/i;
const ANEW = /\b(again|another|second|start over)\b/i;

/** `next_step`: the follow-up whose condition shares the most words with the latest messages; else, for a step that was taken, the one without a condition. */
export function nextStepByWords(question: Question): object {
  const [current, ...followUps] = question.items;
  const words = contentWords(latestOf(question));
  const isTaken = current?.['taken'] === true;
  const found = followUps
    .map((item) => ({ id: textOf(item, 'id'), ...sharedWords(textOf(item, 'condition').replace(`${COMPLETED}; and `, ''), words) }))
    .filter(({ holds }) => holds)
    .sort((one, other) => other.shared.length - one.shared.length)
    .at(0);
  if (found !== undefined) return { rationale: `The latest message has the words ${found.shared.join(', ')}.`, step_completed: true, choice: found.id };
  const onward = followUps.find((item) => textOf(item, 'condition') === COMPLETED);
  const choice = isTaken && onward !== undefined ? textOf(onward, 'id') : '0';
  const rationale = isTaken ? 'The step was taken and the customer has answered.' : 'The step was not taken yet.';
  return { rationale, step_completed: isTaken && (choice !== '0' || followUps.length === 0), choice };
}

/** `check_backtrack`: by words with which people take something back. */
export function backtrackByWords(question: Question): object {
  const latest = latestOf(question);
  const changes = CHANGES.exec(latest);
  const rationale = changes === null ? 'The latest message takes nothing back.' : `The latest message says "${changes[0]}".`;
  return { rationale, requires_backtracking: changes !== null, same_process: !ANEW.test(latest) };
}

/** `select_node`: the visited step that shares the most words with the latest messages, else the last one. */
export function nodeByWords(question: Question): object {
  const words = contentWords(latestOf(question));
  const visited = question.items.filter((item) => item['visited'] === true);
  const best = visited
    .map((item, index) => ({ id: item['id'], index, shared: sharedWords(textOf(item, 'step'), words).shared.length }))
    .sort((one, other) => other.shared - one.shared || other.index - one.index)
    .at(0);
  return { rationale: 'The step that the latest message is about.', backtrack_to: best?.id ?? 1, advanced: [], next_step: best?.id ?? 0 };
}
