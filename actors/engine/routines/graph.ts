import type { Routine } from '#shared/contracts/documents/routine.ts';

export const ROOT = 'root';
export const END = 'end';

interface RoutineNode {
  id: string;
  kind: 'root' | 'chat' | 'tool' | 'fork' | 'end';
  /** What the agent does there: the text of a chat step, the purpose of a tool step. Null: the root, `end`, forks, and tool steps without one. */
  action: string | null;
  description: string | null;
  tools: readonly string[];
  labels: readonly string[];
  metadata: Readonly<Record<string, unknown>>;
}

export interface RoutineEdge {
  /** Unique in the routine: the transition's id, or one with a colon, which no id of a document contains. */
  id: string;
  source: string;
  target: string;
  /** Null: direct, or taken when no other edge of the node applies. */
  condition: string | null;
}

/** A routine's steps and transitions with the root and `end`, which every routine has. A node without edges ends the routine. */
export interface RoutineGraph {
  routineId: string;
  /** By id: the root first, `end` last. */
  nodes: ReadonlyMap<string, RoutineNode>;
  edges: readonly RoutineEdge[];
  /** By source, in the order of the document. Every node has an entry. */
  edgesOf: ReadonlyMap<string, readonly RoutineEdge[]>;
}

type Steps = Pick<Routine, 'id' | 'steps' | 'transitions' | 'initial_step'>;

/** @param routine a valid one: every transition leads from a step or the root to a step or `end` */
export function graphOf({ id, steps, transitions, initial_step: initialStep }: Steps): RoutineGraph {
  const nodes = [emptyNode(ROOT), ...steps.map(nodeOf), emptyNode(END)];
  const given = transitions.map((transition, index): RoutineEdge => {
    return { id: transition.id ?? `transition:${index + 1}`, source: transition.from, target: transition.to, condition: transition.when };
  });
  const fromRoot = given.filter(({ source }) => source === ROOT);
  const first = initialStep ?? (fromRoot.length === 0 ? (steps[0]?.id ?? END) : null);
  const isOpen = fromRoot.some(({ condition }) => condition === null);
  const edges = first === null || isOpen ? given : [{ id: 'transition:0', source: ROOT, target: first, condition: null }, ...given];
  const edgesOf = new Map(nodes.map((node): [string, RoutineEdge[]] => [node.id, []]));
  for (const edge of edges) edgesOf.get(edge.source)?.push(edge);
  return { routineId: id, nodes: new Map(nodes.map((node) => [node.id, node])), edges, edgesOf };
}

function nodeOf(step: Routine['steps'][number]): RoutineNode {
  const { id, kind, description, labels, metadata } = step;
  const common = { id, kind, description, labels, metadata };
  if (step.kind === 'chat') return { ...common, action: step.chat_state, tools: [] };
  return step.kind === 'tool' ? { ...common, action: step.tool_instruction, tools: step.tool_state } : { ...common, action: null, tools: [] };
}

function emptyNode(id: typeof ROOT | typeof END): RoutineNode {
  return { id, kind: id, action: null, description: null, tools: [], labels: [], metadata: {} };
}
