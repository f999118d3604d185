import { followUpCandidates, isFork } from '../routines/follow-ups.ts';
import { END, ROOT, type RoutineGraph } from '../routines/graph.ts';
import type { NodeEvaluation } from '../routines/routine-evaluation.ts';
import type { NodeItem } from './evaluate-node.ts';

/** A node to be evaluated once the nodes after it are. */
export interface NodeTask {
  id: string;
  /** Nodes whose results it needs. */
  needs: ReadonlySet<string>;
}

/** The order in which the nodes of a routine are evaluated: what comes after a node before it. A cycle is cut where it returns to a node on its way. */
export function nodeTasks(graph: RoutineGraph): NodeTask[] {
  const tasks = new Map<string, NodeTask>();
  const open = new Set<string>();
  // An explicit stack: a routine may be a chain of hundreds of steps.
  const stack = [{ id: ROOT, next: nextNodes(graph, ROOT) }];
  open.add(ROOT);
  for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
    const child = top.next.find((id) => !open.has(id) && !tasks.has(id));
    if (child !== undefined) {
      open.add(child);
      stack.push({ id: child, next: nextNodes(graph, child) });
      continue;
    }
    const needs = new Set<string>();
    for (const id of top.next) {
      const task = tasks.get(id);
      if (task === undefined) continue;
      needs.add(id);
      for (const further of task.needs) needs.add(further);
    }
    tasks.set(top.id, { id: top.id, needs });
    open.delete(top.id);
    stack.pop();
  }
  return [...tasks.values()];
}

/** The steps after a node, beyond forks. */
function nextNodes(graph: RoutineGraph, nodeId: string): string[] {
  const found = new Set<string>();
  const forks = new Set([nodeId]);
  for (const from of forks) {
    for (const { target } of graph.edgesOf.get(from) ?? []) {
      if (isFork(graph, target)) forks.add(target);
      else if (target !== END) found.add(target);
    }
  }
  return [...found];
}

interface Routine {
  title: string;
  id: string;
  description: string;
}

/** What is asked about a node; null: nothing, as a model would add nothing. */
export function nodeItem(graph: RoutineGraph, routine: Routine, { id, needs }: NodeTask, done: ReadonlyMap<string, NodeEvaluation>): NodeItem | null {
  const node = graph.nodes.get(id);
  if (node === undefined || (id === ROOT && isOpen(graph))) return null;
  const found = followUpCandidates(graph, id, (other) => (needs.has(other) ? (done.get(other) ?? null) : null));
  // The words of a single condition stand by themselves.
  if (node.action === null && found.every(({ path }) => path.length === 1)) return null;
  const followUps = found.map((followUp) => {
    const last = graph.nodes.get(followUp.path.at(-1) ?? END);
    return { ...followUp, step: last?.kind === 'end' ? 'The routine ends' : (last?.action ?? `Call ${last?.tools.join(', ')}`) };
  });
  return { routine: routine.title || routine.id, description: routine.description, kind: node.kind, action: node.action, tools: node.tools, followUps };
}

/** Whether a routine begins with one step, at which the first question about it is asked. */
function isOpen(graph: RoutineGraph): boolean {
  const [first, ...others] = graph.edgesOf.get(ROOT) ?? [];
  return first?.condition === null && others.length === 0;
}

/** Of a node about which nothing is asked. */
export function plainEvaluation(graph: RoutineGraph, id: string): NodeEvaluation {
  const node = graph.nodes.get(id);
  return {
    internal_action: node?.action ?? null,
    customer_dependent_action_data: { is_customer_dependent: false, customer_action: null, agent_action: null },
    tool_running_only: node?.kind === 'tool',
    follow_ups: followUpCandidates(graph, id, () => null).map(({ condition, path }) => ({ condition, path: [...path] })),
  };
}
