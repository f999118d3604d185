import { isFork } from './follow-ups.ts';
import { END, type RoutineGraph } from './graph.ts';
import type { SelectNodeAnswer } from './routine-calls.ts';

/**
 * The way from the selected node that the graph allows: steps that are out of place are dropped, a single missing node between two is inserted, and the way
 * ends at the first tool step, since its result is not known yet.
 * @returns node ids after the target, empty: the routine stands at the target; null: the routine is left, or the last step can't be reached
 */
export function selectedWay(graph: RoutineGraph, { target, advanced, next }: Pick<SelectNodeAnswer, 'target' | 'advanced' | 'next'>): string[] | null {
  if (next === null || !graph.nodes.has(target)) return null;
  const way: string[] = [];
  const at = () => way.at(-1) ?? target;
  for (const [index, wanted] of [...advanced, next].entries()) {
    if (wanted === at()) continue;
    const link = linkBetween(graph, at(), wanted);
    if (link === null) {
      if (index === advanced.length) return null;
      continue;
    }
    for (const id of link) {
      way.push(id);
      if (id === END || graph.nodes.get(id)?.kind === 'tool') return way;
    }
  }
  return isFork(graph, at()) ? null : way;
}

/** The nodes to pass to reach another one, itself included: directly, or over the only node between the two. */
function linkBetween(graph: RoutineGraph, from: string, to: string): string[] | null {
  const targets = new Set((graph.edgesOf.get(from) ?? []).map(({ target }) => target));
  if (targets.has(to)) return [to];
  const between = [...targets].filter((id) => graph.edgesOf.get(id)?.some(({ target }) => target === to) === true);
  const [connector, ...others] = between;
  return connector === undefined || others.length > 0 ? null : [connector, to];
}
