import type { Documents } from '#shared/config/bundle-body.ts';
import type { Routine } from '#shared/contracts/documents/routine.ts';
import { expandMacros } from './expand-macros.ts';
import { END, graphOf, ROOT, type RoutineEdge } from './routines/graph.ts';

type AutonomousSteps = Pick<Routine, 'id' | 'steps' | 'transitions' | 'initial_step'>;

/** The tools that steps name, each once. */
export function stepToolsOf({ steps }: Pick<Routine, 'steps'>): string[] {
  return [...new Set(steps.flatMap((step) => (step.kind === 'tool' ? step.tool_state : [])))];
}

/**
 * The text of its routine's steps in a run's prompt (rule 133), by their numbers in the document; empty without steps.
 * @param functionOf the function by which the model calls a tool
 */
export function runStepsText(routine: AutonomousSteps, documents: Pick<Documents, 'macros' | 'variable_sets'>, functionOf: (toolId: string) => string): string {
  const { steps } = routine;
  if (steps.length === 0) return '';
  const { edgesOf } = graphOf(routine);
  const numbers = new Map(steps.map(({ id }, index) => [id, index + 1]));
  const target = (id: string) => (id === END ? 'the steps are done' : `go on with step ${numbers.get(id)}`);
  const textOf = (step: Routine['steps'][number]): string => {
    if (step.kind === 'chat') return expandMacros(step.chat_state, documents);
    if (step.kind === 'fork') return 'Decide how to go on.';
    const names = step.tool_state.map(functionOf).join(', ');
    return `Call ${names}.${step.tool_instruction === null ? '' : ` ${step.tool_instruction}`}`;
  };
  const lines = steps.flatMap((step, index) => [`${index + 1}. ${textOf(step)}`, ...ways(edgesOf.get(step.id) ?? [], target)]);
  return `# Steps\nDo the task in these steps, from the beginning on, and after each one go on as it says.\nBeginning:\n${[...ways(edgesOf.get(ROOT) ?? [], target), ...lines].join('\n')}`;
}

/** One line for each way on. */
function ways(edges: readonly RoutineEdge[], target: (id: string) => string): string[] {
  if (edges.length === 0) return [`   - ${target(END)}`];
  const isBranch = edges.some(({ condition }) => condition !== null);
  // The way without a condition is taken when no other is.
  const ordered = [...edges.filter(({ condition }) => condition !== null), ...edges.filter(({ condition }) => condition === null)];
  return ordered.map(({ condition, target: id }) => `   - ${condition !== null ? `if ${condition}: ` : isBranch ? 'otherwise: ' : ''}${target(id)}`);
}
