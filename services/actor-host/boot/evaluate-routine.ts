import { evaluateNode, type NodeItem } from '#actors/engine/evaluation/evaluate-node.ts';
import { nodeItem, nodeTasks, plainEvaluation } from '#actors/engine/evaluation/node-tasks.ts';
import { graphOf } from '#actors/engine/routines/graph.ts';
import { type NodeEvaluation, nodeEvaluation, type RoutineEvaluation } from '#actors/engine/routines/routine-evaluation.ts';
import type { Routine } from '#shared/contracts/documents/routine.ts';
import type { EvaluateItem } from './evaluate-item.ts';

/**
 * Evaluates the nodes of a routine, each as soon as the nodes after it are done.
 * @throws when a node has no result
 */
export async function evaluateRoutine(routine: Routine, evaluate: EvaluateItem): Promise<RoutineEvaluation> {
  const graph = graphOf(routine);
  const tasks = nodeTasks(graph);
  const running = new Map<string, Promise<void>>();
  const done = new Map<string, NodeEvaluation>();
  for (const task of tasks) {
    const evaluated = (async () => {
      await Promise.all([...task.needs].map((id) => running.get(id)));
      const item: NodeItem | null = nodeItem(graph, routine, task, done);
      done.set(task.id, item === null ? plainEvaluation(graph, task.id) : await evaluate('node', evaluateNode, item, nodeEvaluation));
    })();
    running.set(task.id, evaluated);
  }
  const outcomes = await Promise.allSettled(running.values());
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
  return { nodes: Object.fromEntries(done) };
}
