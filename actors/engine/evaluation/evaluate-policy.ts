import { z } from 'zod';
import { cleanJson, cleanText } from '#shared/clean-text.ts';
import { fenced } from '#shared/fenced.ts';
import { answerFormat, readAnswer } from '../read-answer.ts';
import type { EvaluationStep } from './evaluation-step.ts';

export interface PolicyItem {
  condition: string;
  action: string;
}

const MAX_TEXT_CHARS = 2_000;
const text = z.string().transform((value) => cleanText(value.slice(0, MAX_TEXT_CHARS)).trim() || null);

/** What a model found out about a policy at boot. Stored rows outlive releases: fields are only added. */
export const policyResult = z.object({
  continuous: z.boolean(),
  customerDependent: z.boolean(),
  agentIntentionCondition: z.string().nullable(),
  internalAction: z.string().nullable(),
});
type PolicyResult = z.infer<typeof policyResult>;

const answerSchema = z.object({
  continuous: z.boolean(),
  customer_dependent: z.boolean(),
  is_agent_intention: z.boolean(),
  agent_intention_condition: z.string(),
  instruction: z.string(),
});
const format = answerFormat('evaluate_policy', answerSchema);

const INSTRUCTIONS = `# Your task
An agent that talks with customers has policies: while the condition of one holds, the agent does its action. You get one policy. Answer these questions about it.

1. "continuous": true if the action is a manner that holds throughout, as "speak simply" or "never name prices"; false if it is done once and then done, as "ask for the order number".
2. "customer_dependent": true if the action is done only once the customer has answered, as when the agent asks for something.
3. "is_agent_intention": true if the condition is about what the agent itself is going to say or do, as "you name a price". Then "agent_intention_condition" is the condition as an intention, as "the agent is about to name a price"; else it is empty.
4. "instruction": the action, to be understood without the condition. Replace words such as "it" or "that" by what they mean, and keep everything else as it is.

# Example
Policy: {"condition":"the customer says that the machine leaks","action":"ask where it leaks"}
Answer: {"continuous":false,"customer_dependent":true,"is_agent_intention":false,"agent_intention_condition":"","instruction":"ask where the machine leaks"}

# Answer
JSON with these fields.`;

/** Rule 46. */
export const evaluatePolicy: EvaluationStep<PolicyItem, PolicyResult> = {
  template: 'evaluate-policy@1',

  render({ condition, action }) {
    return {
      messages: [
        { role: 'system', content: INSTRUCTIONS },
        {
          role: 'user',
          content: fenced('evaluation', cleanJson({ condition, action }), (line) => `The policy is the line of JSON between the two lines ${line}.`),
        },
      ],
      response_format: format,
    };
  },

  read(reply) {
    const read = readAnswer({ text: reply }, answerSchema);
    if (read.type === 'malformed') return read;
    const { continuous, customer_dependent: customerDependent, is_agent_intention, agent_intention_condition, instruction } = read.answer;
    const agentIntentionCondition = is_agent_intention ? text.parse(agent_intention_condition) : null;
    return { type: 'read', result: { continuous, customerDependent, agentIntentionCondition, internalAction: text.parse(instruction) } };
  },
};
