import { routineLimits } from '#shared/contracts/documents/routine-limits.ts';
import { ownValue } from '#shared/own-value.ts';
import { END, ROOT, type RoutineEdge, type RoutineGraph } from './graph.ts';
import type { NodeEvaluation, RoutineEvaluation } from './routine-evaluation.ts';

/** Where a routine may go on from a step. The model only says which condition holds; the path is the graph's. */
export interface FollowUp {
  condition: string;
  /** Node ids after the step, forks and skipped steps included. The last one is a chat or tool step, or `end`. */
  path: readonly string[];
}

/** Shown in one question. Without an evaluation these are all; further ones of an evaluation are longer, and are reached over a nearer step. */
export const MAX_FOLLOW_UPS = routineLimits.followUps;
/** Steps of a path; one more when it leads through a fork. */
const MAX_DEPTH = 3;
/** Of forks in a row, whose branches multiply. The documents' check allows no more. */
const MAX_WALKED_EDGES = 2_000;

const COMPLETED = 'The step is completed';
const ALWAYS = 'Always';
const OTHERWISE = 'None of the other conditions holds';

interface Way {
  /** Conditions on the way, in order. */
  conditions: readonly string[];
  path: readonly string[];
  /** Steps on the way; forks do not count. */
  depth: number;
}

/**
 * The steps that may follow a node: those of the evaluation, or those after its own transitions, beyond forks.
 * @param evaluation null: pending or failed
 */
export function followUpsOf(graph: RoutineGraph, nodeId: string, evaluation: RoutineEvaluation | null): readonly FollowUp[] {
  const evaluated = evaluation === null ? undefined : ownValue(evaluation.nodes, nodeId)?.follow_ups;
  // Written by this or another release; what the graph does not allow must not be shown.
  if (evaluated?.every(({ path }) => isPath(graph, nodeId, path))) return evaluated;
  return followUpCandidates(graph, nodeId, () => null);
}

/**
 * The follow-ups with the conditions on the way joined. A way leads on through forks, and through steps that wait for the customer's word, since that may
 * have been said already; nearer ones come first.
 * @param evaluationOf null: a way ends at the node
 */
export function followUpCandidates(graph: RoutineGraph, nodeId: string, evaluationOf: (nodeId: string) => NodeEvaluation | null): FollowUp[] {
  if (endsAfter(graph, nodeId)) return [];
  const found: FollowUp[] = [];
  let walked = 0;
  let ways: Way[] = [{ conditions: [], path: [], depth: 0 }];
  while (ways.length > 0) {
    const longer: Way[] = [];
    for (const way of ways) {
      for (const edge of graph.edgesOf.get(way.path.at(-1) ?? nodeId) ?? []) {
        walked += 1;
        if (found.length === MAX_FOLLOW_UPS || walked > MAX_WALKED_EDGES) return found;
        // A cycle ends where it meets its way. Where it began it may end: a step may follow itself.
        if (way.path.includes(edge.target)) continue;
        const conditions = [...way.conditions, ...conditionOf(graph, edge)];
        const path = [...way.path, edge.target];
        if (isFork(graph, edge.target)) {
          if (edge.target !== nodeId) longer.push({ conditions, path, depth: way.depth });
          continue;
        }
        found.push({ condition: conditions.join('; and ') || ALWAYS, path });
        const depth = way.depth + 1;
        const done = edge.target === nodeId || endsAfter(graph, edge.target) ? null : doneAlready(graph, edge.target, evaluationOf(edge.target));
        if (done !== null && depth < maxDepthOf(graph, path)) longer.push({ conditions: [...conditions, done], path, depth });
      }
    }
    ways = longer;
  }
  return found;
}

/** What must be true already to pass over a step; null: it must be taken. */
function doneAlready(graph: RoutineGraph, nodeId: string, evaluation: NodeEvaluation | null): string | null {
  const customer = evaluation?.customer_dependent_action_data;
  if (graph.nodes.get(nodeId)?.kind !== 'chat' || customer?.is_customer_dependent !== true) return null;
  return `This has been done already: ${customer.customer_action ?? 'the customer has answered'}`;
}

function maxDepthOf(graph: RoutineGraph, path: readonly string[]): number {
  return path.some((id) => isFork(graph, id)) ? MAX_DEPTH + 1 : MAX_DEPTH;
}

function conditionOf(graph: RoutineGraph, { source, condition }: RoutineEdge): string[] {
  if (condition !== null) return [condition];
  const siblings = graph.edgesOf.get(source) ?? [];
  if (siblings.length > 1) return [OTHERWISE];
  return isFork(graph, source) || source === ROOT ? [] : [COMPLETED];
}

/** Whether nothing comes after a node: it has no transitions, or a single one without a condition to `end`. */
export function endsAfter(graph: RoutineGraph, nodeId: string): boolean {
  const [edge, ...others] = graph.edgesOf.get(nodeId) ?? [];
  return edge === undefined || (others.length === 0 && edge.condition === null && edge.target === END);
}

/** Whether a list of nodes is a way along edges, from a node to a step or `end`. */
function isPath(graph: RoutineGraph, from: string, path: readonly string[]): boolean {
  const last = path.at(-1);
  if (last === undefined || isFork(graph, last)) return false;
  return path.every((target, index) => {
    const source = index === 0 ? from : (path[index - 1] ?? from);
    return graph.edgesOf.get(source)?.some((edge) => edge.target === target) === true;
  });
}

export function isFork(graph: RoutineGraph, nodeId: string): boolean {
  return graph.nodes.get(nodeId)?.kind === 'fork';
}
