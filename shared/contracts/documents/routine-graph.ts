import { quotedName } from '../printed-name.ts';
import { routineLimits } from './routine-limits.ts';

const ROOT = 'root';
const END = 'end';

interface Transition {
  id: string | null;
  from: string;
  to: string;
  when: string | null;
}
interface Graph {
  steps: readonly { id: string; kind: 'chat' | 'tool' | 'fork' }[];
  transitions: readonly Transition[];
  initial_step: string | null;
}
type Report = (path: (string | number)[], message: string) => void;

/**
 * Validates a routine's steps and transitions as a graph. It has one root, which does nothing, and one `end`; a step without transitions
 * ends the routine too. Cycles are allowed.
 */
export function checkRoutineGraph(graph: Graph, report: Report): void {
  const ids = new Set(graph.steps.map((step) => step.id));
  const namesAreSound = checkNames(graph, ids, report);
  const edges = edgesOf(graph);
  checkBranches(graph, edges, report);
  if (!namesAreSound || graph.steps.length === 0) return;
  // A longer list is refused by its length.
  if (graph.steps.length <= routineLimits.steps && graph.transitions.length <= routineLimits.transitions) checkFollowUps(graph, edges, report);
  checkWays(graph, edges, report);
}

/** @returns whether every name refers to a step: only then is reachability checked */
function checkNames({ steps, transitions, initial_step: initialStep }: Graph, ids: ReadonlySet<string>, report: Report): boolean {
  let sound = true;
  const refuse: Report = (path, message) => {
    sound = false;
    report(path, message);
  };
  const seenSteps = new Set<string>();
  steps.forEach(({ id }, index) => {
    if (id === ROOT || id === END) refuse(['steps', index, 'id'], `must not be ${quotedName(id)}, which every routine has already`);
    if (seenSteps.has(id)) refuse(['steps', index, 'id'], `repeats ${quotedName(id)}, the id of an earlier step`);
    seenSteps.add(id);
  });
  const seenTransitions = new Set<string>();
  transitions.forEach(({ id, from, to }, index) => {
    if (id !== null && seenTransitions.has(id)) report(['transitions', index, 'id'], `repeats ${quotedName(id)}, the id of an earlier transition`);
    if (id !== null) seenTransitions.add(id);
    if (from !== ROOT && !ids.has(from)) refuse(['transitions', index, 'from'], `must be a step's id or root; there is no step ${quotedName(from)}`);
    if (to !== END && !ids.has(to)) refuse(['transitions', index, 'to'], `must be a step's id or end; there is no step ${quotedName(to)}`);
  });
  if (initialStep !== null && !ids.has(initialStep)) refuse(['initial_step'], `must be a step's id; there is no step ${quotedName(initialStep)}`);
  return sound;
}

/** Outgoing edges of each step and the root. If no unconditional transition leaves the root, an edge to the initial step is added. */
function edgesOf({ steps, transitions, initial_step: initialStep }: Graph): Map<string, Pick<Transition, 'to' | 'when'>[]> {
  const edges = new Map<string, Pick<Transition, 'to' | 'when'>[]>([[ROOT, []], ...steps.map(({ id }): [string, []] => [id, []])]);
  for (const { from, to, when } of transitions) edges.get(from)?.push({ to, when });
  const fromRoot = edges.get(ROOT) ?? [];
  const first = initialStep ?? (fromRoot.length === 0 ? steps[0]?.id : undefined);
  if (first !== undefined && !fromRoot.some((edge) => edge.when === null)) fromRoot.push({ to: first, when: null });
  return edges;
}

function checkBranches({ steps, transitions, initial_step: initialStep }: Graph, edges: ReturnType<typeof edgesOf>, report: Report): void {
  const openWays = new Map<string, string>();
  transitions.forEach(({ from, to, when }, index) => {
    if (when !== null) return;
    if (openWays.has(from)) report(['transitions', index, 'when'], `must be given: ${quotedName(from)} has another way without a condition already`);
    else openWays.set(from, to);
  });
  const fromRoot = openWays.get(ROOT);
  if (initialStep !== null && fromRoot !== undefined && fromRoot !== initialStep) {
    report(['initial_step'], `must be ${quotedName(fromRoot)}, where a transition without a condition leads from root, or be left out`);
  }
  steps.forEach(({ id, kind }, index) => {
    const conditional = edges.get(id)?.filter((edge) => edge.when !== null).length ?? 0;
    if (kind === 'fork' && conditional < 2)
      report(['steps', index], `must have at least 2 transitions with a condition, because it is a fork; ${quotedName(id)} has ${conditional}`);
  });
}

/** Ways from a step over forks multiply. They are counted up to the limit, in the order in which the engine finds them. */
function checkFollowUps({ steps }: Graph, edges: ReturnType<typeof edgesOf>, report: Report): void {
  const forks = new Set(steps.filter(({ kind }) => kind === 'fork').map(({ id }) => id));
  const refuse = (path: (string | number)[], id: string) => {
    report(path, `has more than ${routineLimits.followUps} ways on, forks included: all are shown in one question; ${quotedName(id)} needs fewer`);
  };
  if (countWays(ROOT, edges, forks) > routineLimits.followUps) refuse(['transitions'], ROOT);
  steps.forEach(({ id }, index) => {
    if (countWays(id, edges, forks) > routineLimits.followUps) refuse(['steps', index], id);
  });
}

/** Steps of a search; tangled forks have many ways that lead nowhere new. */
const MAX_WALKED = 2_000;

function countWays(from: string, edges: ReturnType<typeof edgesOf>, forks: ReadonlySet<string>): number {
  let [count, walked] = [0, 0];
  let ways: string[][] = [[]];
  while (ways.length > 0) {
    const longer: string[][] = [];
    for (const way of ways) {
      for (const { to } of edges.get(way.at(-1) ?? from) ?? []) {
        walked += 1;
        if (way.includes(to)) continue;
        if (!forks.has(to)) count += 1;
        else if (to !== from) longer.push([...way, to]);
        if (count > routineLimits.followUps || walked > MAX_WALKED) return routineLimits.followUps + 1;
      }
    }
    ways = longer;
  }
  return count;
}

function checkWays({ steps }: Graph, edges: ReturnType<typeof edgesOf>, report: Report): void {
  const reached = follow([ROOT], (node) => edges.get(node)?.map((edge) => edge.to) ?? []);
  const backwards = new Map<string, string[]>([[END, []], ...steps.map(({ id }): [string, []] => [id, []])]);
  for (const [from, ways] of edges) for (const { to } of ways) backwards.get(to)?.push(from);
  const leaves = steps.filter(({ id }) => edges.get(id)?.length === 0).map(({ id }) => id);
  const ending = follow([END, ...leaves], (node) => backwards.get(node) ?? []);
  steps.forEach(({ id }, index) => {
    if (!reached.has(id)) report(['steps', index], `can't be reached from root: no transition leads to ${quotedName(id)}`);
    else if (!ending.has(id)) report(['steps', index], `never ends: no way leads from ${quotedName(id)} to end or to a step without transitions`);
  });
}

/** All nodes reachable from the given ones, themselves included. */
function follow(start: readonly string[], next: (node: string) => readonly string[]): Set<string> {
  const reached = new Set(start);
  for (const node of reached) for (const following of next(node)) reached.add(following);
  return reached;
}
