import { endsAfter, isFork } from './follow-ups.ts';
import { END, ROOT, type RoutineGraph } from './graph.ts';
import { type BacktrackAnswer, callKey, type NextStepAnswer, type RoutineAnswer, type RoutineCall, type SelectNodeAnswer } from './routine-calls.ts';
import { currentNode, knownPath, moved, type RoutineMove, type RoutinePath, visitedSteps } from './routine-machine.ts';
import type { RoutineModel } from './routine-model.ts';
import { selectedWay } from './selected-way.ts';

/** What a pass of a turn begins with. */
export interface RoutinePass {
  /** Routines of which a condition holds. */
  activated: ReadonlySet<string>;
  /** Ids of the tools that have run since the pass before; none in the first one. */
  ranTools: ReadonlySet<string>;
  /** Tool steps of which no tool has run since, and need not: `routine:step`. */
  doneSteps: ReadonlySet<string>;
}

/** What has happened since the pass before. */
export type SincePass = Pick<RoutinePass, 'ranTools' | 'doneSteps'>;

export const nothingSince: SincePass = { ranTools: new Set(), doneSteps: new Set() };

/** The step of a routine that counts in this turn. */
export interface RoutineStep {
  routineId: string;
  /** A chat or tool step. */
  stepId: string;
  /** The tools of a tool step that have not run since it was entered. */
  pendingTools: readonly string[];
}

interface Answers {
  passes: readonly RoutinePass[];
  answers: ReadonlyMap<string, RoutineAnswer>;
}

interface Planned {
  calls: RoutineCall[];
  path: RoutinePath;
  step: RoutineStep | null;
}

/** One routine in a turn: a pass after the other, until an answer is missing. Until then the path is that of the passes before. */
export function planRoutine(model: RoutineModel, before: RoutinePath, { passes, answers }: Answers): Planned {
  const { graph } = model;
  let path = knownPath(graph, before);
  let wasConsidered = false;
  /** The tools of the current step have not run. */
  let isPending = false;
  for (const [index, pass] of passes.entries()) {
    const node = currentNode(graph, path);
    const hasRun = node !== null && hasRunIn(pass, model, node);
    if (wasConsidered && !hasRun) continue;
    if (node === null && !pass.activated.has(model.routine.id)) continue;
    const asked = asking(model, index + 1, answers);
    const outcome = hasRun ? afterTools(graph, path, node, asked) : node === null ? entered(graph, path, asked) : continued(graph, path, node, asked);
    if ('calls' in outcome) return { calls: outcome.calls, path, step: null };
    wasConsidered = true;
    isPending = !hasRun || outcome.path !== path;
    path = outcome.path;
  }
  const stepId = currentNode(graph, path);
  if (stepId === null || !wasConsidered) return { calls: [], path, step: null };
  return { calls: [], path, step: { routineId: model.routine.id, stepId, pendingTools: isPending ? (graph.nodes.get(stepId)?.tools ?? []) : [] } };
}

function hasRunIn({ ranTools, doneSteps }: RoutinePass, { routine, graph }: RoutineModel, node: string): boolean {
  return doneSteps.has(`${routine.id}:${node}`) || graph.nodes.get(node)?.tools.some((tool) => ranTools.has(tool)) === true;
}

type Outcome = { calls: RoutineCall[] } | { path: RoutinePath };

interface Asked {
  /** Null: to be asked. */
  answerTo<Kind extends RoutineAnswer['kind']>(kind: Kind, at: At): Extract<RoutineAnswer, { kind: Kind }> | null;
  call(kind: RoutineAnswer['kind'], at: At): RoutineCall;
}

type At = Pick<RoutineCall, 'path' | 'at' | 'prefix'>;

function asking({ routine, evaluation }: RoutineModel, pass: number, answers: Answers['answers']): Asked {
  return {
    answerTo(kind, { path }) {
      const answer = answers.get(callKey({ kind, routineId: routine.id, pass, path }));
      // TypeScript does not narrow a union by a type parameter.
      return answer?.kind === kind ? (answer as Extract<RoutineAnswer, { kind: typeof kind }>) : null;
    },
    call: (kind, { path, at, prefix }) => ({ kind, routineId: routine.id, pass, path, at, prefix, evaluation: evaluation?.hash ?? null }),
  };
}

/** A routine without a live path, of which a condition holds. */
function entered(graph: RoutineGraph, path: RoutinePath, asked: Asked): Outcome {
  const last = visitedSteps(graph, path).at(-1);
  if (last === undefined) return begun(graph, path, asked);
  const at = { path: [...path], at: last, prefix: [] };
  const backtrack = asked.answerTo('backtrack', at);
  if (backtrack === null) return { calls: [asked.call('backtrack', at)] };
  return backtrack.requiresBacktracking ? wentBack(graph, path, { at, backtrack, asked }) : { path };
}

/** A live path: whether it goes back, and where it goes on, are asked at once. */
function continued(graph: RoutineGraph, path: RoutinePath, node: string, asked: Asked): Outcome {
  const at = { path: [...path], at: node, prefix: [] };
  const backtrack = asked.answerTo('backtrack', at);
  if (backtrack?.requiresBacktracking) return wentBack(graph, path, { at, backtrack, asked });
  const nextStep = asked.answerTo('next-step', at);
  if (backtrack !== null && nextStep !== null) return { path: advanced(graph, path, at, nextStep) };
  return { calls: [...(nextStep === null ? [asked.call('next-step', at)] : []), ...(backtrack === null ? [asked.call('backtrack', at)] : [])] };
}

/** The tools of the step have run: with one way on there is nothing to ask. */
function afterTools(graph: RoutineGraph, path: RoutinePath, node: string, asked: Asked): Outcome {
  if ((graph.edgesOf.get(node) ?? []).length === 0) return { path: applied(graph, path, [{ type: 'leave' }]) };
  const way = openWay(graph, node);
  if (way !== null) return { path: applied(graph, path, [{ type: 'follow', to: way }]) };
  const at = { path: [...path], at: node, prefix: [] };
  const answer = asked.answerTo('next-step', at);
  return answer === null ? { calls: [asked.call('next-step', at)] } : { path: advanced(graph, path, at, answer) };
}

/** From the root: a routine that begins with a tool step is entered at once, another one at the step that is not done yet. */
function begun(graph: RoutineGraph, path: RoutinePath, asked: Asked): Outcome {
  const prefix = openWay(graph, ROOT) ?? [];
  const first = prefix.at(-1) ?? ROOT;
  if (first === END || graph.nodes.get(first)?.kind === 'tool') return { path: applied(graph, path, [{ type: 'follow', to: prefix }]) };
  const at = { path: [...path], at: first, prefix };
  const answer = asked.answerTo('next-step', at);
  return answer === null ? { calls: [asked.call('next-step', at)] } : { path: advanced(graph, path, at, answer) };
}

interface Backtracking {
  at: At;
  backtrack: BacktrackAnswer;
  asked: Asked;
}

function wentBack(graph: RoutineGraph, path: RoutinePath, { at, backtrack, asked }: Backtracking): Outcome {
  if (!backtrack.isSameProcess) return begun(graph, path.at(-1) === null ? path : applied(graph, path, [{ type: 'leave' }]), asked);
  const selected = asked.answerTo('select-node', at);
  if (selected === null) return { calls: [asked.call('select-node', at)] };
  return { path: selectedPath(graph, path, selected) };
}

function selectedPath(graph: RoutineGraph, path: RoutinePath, selected: SelectNodeAnswer): RoutinePath {
  const way = selectedWay(graph, selected);
  if (way === null) return path.at(-1) === null ? path : applied(graph, path, [{ type: 'leave' }]);
  return applied(graph, path, [{ type: 'go-back', to: selected.target, onward: way }]);
}

function advanced(graph: RoutineGraph, path: RoutinePath, { at, prefix }: At, { follow, isCompleted }: NextStepAnswer): RoutinePath {
  const isStep = at !== ROOT && !isFork(graph, at);
  if (follow === null) return path.at(-1) === null ? path : applied(graph, path, [{ type: 'leave' }]);
  const isOver = follow.length === 0 && isCompleted && endsAfter(graph, at) && isStep;
  // At the root, or at a fork before the first step, nothing is entered while no condition holds.
  const way = follow.length > 0 || isStep ? [...prefix, ...follow] : [];
  return applied(graph, path, [{ type: 'follow', to: way }, ...(isOver ? [{ type: 'leave' } as const] : [])]);
}

/** A move that the graph does not allow changes nothing: the answer was about another version of the routine. */
function applied(graph: RoutineGraph, path: RoutinePath, moves: readonly RoutineMove[]): RoutinePath {
  let after = path;
  for (const move of moves) {
    const next = moved(graph, after, move);
    if (next === null) return path;
    after = next;
  }
  return after;
}

/** Nodes to the next step, over forks with one exit; null: there are several ways, or one with a condition. */
function openWay(graph: RoutineGraph, from: string): string[] | null {
  const way: string[] = [];
  for (let at = from; at === from || isFork(graph, at); at = way.at(-1) ?? from) {
    const [edge, ...others] = graph.edgesOf.get(at) ?? [];
    if (edge === undefined || others.length > 0 || edge.condition !== null || way.includes(edge.target)) {
      // The root may lead to a fork, where the routine is asked about.
      return from === ROOT && way.length > 0 ? way : null;
    }
    way.push(edge.target);
  }
  return way;
}
