import { z } from 'zod';
import { type InferAnswer, type ParameterProblem, parameterProblem } from './infer-answer.ts';

/** What the agent asks the customer, since a tool can't be called without it. */
export const parameterQuestion = parameterProblem.omit({ precedence: true, hidden: true }).extend({ toolId: z.string() });
export type ParameterQuestion = z.infer<typeof parameterQuestion>;

/**
 * What to ask for: of all tools that can't be called, the parameters of the lowest precedence. Hidden ones are never asked for, and do not hide others.
 * @param ran tools that were called in this turn: what an earlier inference missed is known by now
 */
export function parameterQuestions(answers: readonly InferAnswer[], ran: ReadonlySet<string>): ParameterQuestion[] {
  const open = new Map<string, { toolId: string; problem: ParameterProblem }>();
  for (const tool of answers.flatMap(({ tools }) => tools)) {
    if (tool.outcome !== 'cannot_run' || ran.has(tool.toolId)) continue;
    for (const problem of tool.problems) if (!problem.hidden) open.set(`${tool.toolId} ${problem.parameter}`, { toolId: tool.toolId, problem });
  }
  const lowest = Math.min(...[...open.values()].map(({ problem }) => problem.precedence));
  return [...open.values()]
    .filter(({ problem }) => problem.precedence === lowest)
    .map(({ toolId, problem: { precedence: _, hidden: __, ...shown } }) => ({ toolId, ...shown }));
}
