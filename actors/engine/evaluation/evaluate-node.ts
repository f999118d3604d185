import { z } from 'zod';
import { cleanJson, cleanText } from '#shared/clean-text.ts';
import { fenced } from '#shared/fenced.ts';
import { answerFormat, byOrdinal, readAnswer } from '../read-answer.ts';
import type { NodeEvaluation } from '../routines/routine-evaluation.ts';
import type { EvaluationStep } from './evaluation-step.ts';

/** A node of a routine, with what a prompt shows of it. */
export interface NodeItem {
  routine: string;
  description: string;
  kind: 'root' | 'chat' | 'tool' | 'fork' | 'end';
  /** Null: it has none. */
  action: string | null;
  tools: readonly string[];
  /** Computed from the graph: only the words of the conditions are the model's. */
  followUps: readonly { condition: string; path: readonly string[]; step: string }[];
}

const MAX_TEXT_CHARS = 2_000;
const text = z.string().transform((value) => cleanText(value.slice(0, MAX_TEXT_CHARS)).trim());

const answerSchema = z.object({
  instruction: z.string(),
  customer_dependent: z.boolean(),
  customer_action: z.string(),
  agent_action: z.string(),
  only_runs_tools: z.boolean(),
  follow_ups: z.array(z.object({ id: z.int(), condition: z.string() })),
});
const format = answerFormat('evaluate_node', answerSchema);

const INSTRUCTIONS = `# Your task
An agent follows a routine with its customers, step by step. You get one step of the routine and the steps that may follow it. Prepare the step, so that it is understood without the rest of the routine.

1. "instruction": the step's instruction, to be understood by itself. Replace words such as "it" or "that" by what they mean. Keep everything else as it is, placeholders such as \${name} included. An empty text if the step has no instruction.
2. "customer_dependent": true if the step is done only once the customer has said or done something (as when the agent asks for a number), false if it is done when the agent has spoken.
3. "customer_action": what the customer does in the step, as in "The customer has named the order number". "agent_action": what the agent does, as in "The agent asks for the order number". Empty where there is nothing.
4. "only_runs_tools": true if the step only calls tools, and the agent says nothing in it.
5. "follow_ups": for each step that may follow, by its number, the condition under which it follows, in one sentence that is understood by itself. Join all parts of the given condition; add none and leave none out.

# Example
Step: {"routine":"Book a table","kind":"chat","instruction":"Ask for how many people it is."} and {"id":1,"condition":"The step is completed; and At most 8","step":"Ask for the time"}
Answer: {"instruction":"Ask for how many people the table is booked.","customer_dependent":true,"customer_action":"The customer has said for how many people the table is","agent_action":"The agent asks for how many people the table is","only_runs_tools":false,"follow_ups":[{"id":1,"condition":"The customer has said for how many people the table is, and it is at most 8"}]}

# Answer
JSON with these fields, and exactly one entry of "follow_ups" for each number.`;

function sentence(boundary: string): string {
  return `The step, and those that may follow, are the lines of JSON between the two lines ${boundary}.`;
}

/** Rule 45. */
export const evaluateNode: EvaluationStep<NodeItem, NodeEvaluation> = {
  template: 'evaluate-node@1',

  render({ routine, description, kind, action, tools, followUps }) {
    const step = { routine, ...(description !== '' && { description }), kind, instruction: action ?? '', ...(tools.length > 0 && { tools }) };
    const lines = [step, ...followUps.map(({ condition, step: next }, index) => ({ id: index + 1, condition, step: next }))];
    return {
      messages: [
        { role: 'system', content: INSTRUCTIONS },
        { role: 'user', content: fenced('evaluation', lines.map((line) => cleanJson(line)).join('\n'), sentence) },
      ],
      response_format: format,
    };
  },

  read(reply, { action, followUps }) {
    const read = readAnswer({ text: reply }, answerSchema);
    if (read.type === 'malformed') return read;
    const { instruction, customer_dependent: isDependent, customer_action, agent_action, only_runs_tools, follow_ups } = read.answer;
    const found = byOrdinal(followUps, follow_ups);
    if (found.type === 'malformed') return found;
    const given = (value: string) => text.parse(value) || null;
    const result: NodeEvaluation = {
      internal_action: action === null ? null : given(instruction),
      customer_dependent_action_data: {
        is_customer_dependent: isDependent,
        customer_action: given(customer_action),
        agent_action: given(agent_action),
      },
      tool_running_only: only_runs_tools,
      follow_ups: found.pairs.map(([{ condition, path }, row]) => ({ condition: given(row.condition) ?? condition, path: [...path] })),
    };
    return { type: 'read', result };
  },
};
