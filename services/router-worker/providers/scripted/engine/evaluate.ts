import { type Question, textOf } from './question.ts';

const ASKS = /\bask/i;
const MANNER = /\b(always|never|tone|speak|style|polite|politely|kind|kindly)\b/i;

/** `evaluate_node`: the texts as they are. A script can't say which steps the customer may have answered before. */
export function evaluateNode({ items: [step, ...followUps] }: Question): object {
  return {
    instruction: textOf(step ?? {}, 'instruction'),
    customer_dependent: false,
    customer_action: '',
    agent_action: '',
    only_runs_tools: step?.['kind'] === 'tool',
    follow_ups: followUps.map((item) => ({ id: item['id'], condition: textOf(item, 'condition') })),
  };
}

/** `evaluate_policy`: by words of manners and of questions. */
export function evaluatePolicy({ items: [policy] }: Question): object {
  const action = textOf(policy ?? {}, 'action');
  const found = { continuous: MANNER.test(action), customer_dependent: ASKS.test(action), is_agent_intention: false };
  return { ...found, agent_intention_condition: '', instruction: action };
}
