import { latestOf, type Question } from './question.ts';

const MAX_CHARS = 1_000;

/** `rewrite_query`: what the customer has written since the agent's last message. A script can't say what "it" stands for. */
export function queryOfMessages(question: Question): object {
  return { query: latestOf(question).replace(/\s+/g, ' ').trim().slice(-MAX_CHARS) };
}
