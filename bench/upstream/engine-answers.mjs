import { chunk, usageOf } from './answer-parts.mjs';

/** @typedef {{ id?: number, condition?: string, action?: string, instruction?: string }} Item */
/** @typedef {{ messages?: { content?: unknown }[], response_format?: { json_schema?: { name?: string } } }} Question */

const HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n';
/** Two of the twelve policies, and the routine. */
const HOLDS = /topic (?:0|6)\b|machine is broken/;
const REPLY = 'The warranty covers two years.';
const RATIONALE = 'The customer says so.';

/** By the name of the answer's schema; all others are about items with verdicts. @type {Record<string, (items: Item[]) => object>} */
const answers = {
  // It waits for the customer.
  next_step: () => ({ rationale: RATIONALE, step_completed: false, choice: '0' }),
  check_backtrack: () => ({ rationale: RATIONALE, requires_backtracking: false, same_process: true }),
  write_preamble: () => ({ preamble: 'One moment, please.' }),
  judge_applied: (items) => verdictsOn(items, () => true),
  evaluate_node: ([step, ...followUps]) => ({
    ...{ instruction: step?.instruction ?? '', customer_dependent: false, customer_action: '', agent_action: '', only_runs_tools: false },
    follow_ups: followUps.map(({ id, condition = '' }) => ({ id, condition })),
  }),
  evaluate_policy: ([policy]) => ({
    ...{ continuous: false, customer_dependent: false, is_agent_intention: false, agent_intention_condition: '' },
    instruction: policy?.action ?? '',
  }),
};

/** Milliseconds until the answer, of the path of an agent's model. @param {string} path @returns {number | null} null: another path */
export function engineDelayOf(path) {
  const [, delayMs] = /^\/engine-d(\d+)\//.exec(path) ?? [];
  return delayMs === undefined ? null : Number(delayMs);
}

/** The bytes of the answer to a question of an agent's engine, or of its reply. @param {string} body of the request */
export function engineAnswer(body) {
  const question = /** @type {Question} */ (JSON.parse(body));
  const schema = question.response_format?.json_schema?.name;
  const content = schema === undefined ? REPLY : JSON.stringify(answers[schema]?.(itemsOf(question)) ?? verdictsOn(itemsOf(question), HOLDS.test.bind(HOLDS)));
  const send = (/** @type {object} */ fields) =>
    `data: ${JSON.stringify({ id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1, model: 'bench', ...fields })}\n\n`;
  const choice = (/** @type {object} */ delta, /** @type {string | null} */ reason) => ({ choices: [{ index: 0, delta, finish_reason: reason }] });
  const events = [send(choice({ role: 'assistant', content }, null)), send(choice({}, 'stop')), send({ choices: [], usage: usageOf(content.length >> 2) })];
  return `${HEAD}${chunk(`${events.join('')}data: [DONE]\n\n`)}0\r\n\r\n`;
}

/** @param {readonly Item[]} items @param {(condition: string) => boolean} holds */
function verdictsOn(items, holds) {
  return {
    verdicts: items.map(({ condition = '' }, index) => {
      const applies = holds(condition);
      return { id: index + 1, rationale: RATIONALE, applies, condition_met_again: applies, action_wasnt_taken: false, should_reapply: applies };
    }),
  };
}

/** The lines of JSON of the last message. @param {Question} question @returns {Item[]} */
function itemsOf({ messages = [] }) {
  const lines = String(messages.at(-1)?.content).split('\n');
  return lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line));
}
