import type { RoutineStep } from '../routines/plan-routine.ts';
import type { InferAnswer, InferredTool } from './infer-answer.ts';
import { iterationOf } from './tool-rounds.ts';

interface Round {
  /** Ids of the tools that have run in this iteration. */
  ranTools: ReadonlySet<string>;
  /** Of those that have run in earlier iterations of the turn, and have taken no routine on. */
  ranBefore: ReadonlySet<string>;
  /** Of this iteration. */
  inferred: ReadonlyMap<string, InferredTool['outcome']>;
}

/**
 * Tool steps of which no tool has run in the iteration, and none has to: one has run earlier in the turn, or its data is in the context. A tool that cannot
 * run, as a parameter is missing, keeps its step standing.
 * @returns `routine:step`
 */
export function stepsWithoutNeed(steps: readonly RoutineStep[], { ranTools, ranBefore, inferred }: Round): ReadonlySet<string> {
  const hasData = (toolId: string) => ranBefore.has(toolId) || inferred.get(toolId) === 'data_already_in_context';
  const done = steps.filter(
    ({ pendingTools }) => pendingTools.some(hasData) && !pendingTools.some((toolId) => ranTools.has(toolId) || inferred.get(toolId) === 'cannot_run'),
  );
  return new Set(done.map(({ routineId, stepId }) => `${routineId}:${stepId}`));
}

/** What the inferences of an iteration have found about each tool that they were asked about. */
export function inferredIn(iteration: number, inferences: ReadonlyMap<string, { answer: InferAnswer }>): ReadonlyMap<string, InferredTool['outcome']> {
  const ofIteration = [...inferences].filter(([key]) => iterationOf(key) === iteration);
  return new Map(ofIteration.flatMap(([, { answer }]) => answer.tools.map(({ toolId, outcome }) => [toolId, outcome] as const)));
}
