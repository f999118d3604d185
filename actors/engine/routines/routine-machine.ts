import { type AnyStateMachine, assign, setup } from 'xstate';
import { ownValue } from '#shared/own-value.ts';
import { transition } from '../../runtime/apply/transition.ts';
import { isFork } from './follow-ups.ts';
import { END, ROOT, type RoutineGraph } from './graph.ts';
import type { RoutineModel } from './routine-model.ts';

/** Nodes that a session has passed in a routine, in order. A trailing null: the routine was left, or has ended; `[null]`: it was considered, never entered. */
export type RoutinePath = readonly (string | null)[];

export type RoutineMove =
  /** Along edges. From a path that has ended, from the root again. */
  | { type: 'follow'; to: readonly string[] }
  /** To a step of the path, and along edges from there. */
  | { type: 'go-back'; to: string; onward: readonly string[] }
  | { type: 'leave' };

/** Nodes that are kept of a path; the oldest are dropped. */
export const MAX_PATH_NODES = 100;

type Event = { type: 'step'; to: string } | { type: 'back'; to: string } | { type: 'leave' };

const machines = new WeakMap<RoutineGraph, AnyStateMachine>();

/**
 * The path after a move; null: the graph does not allow it. What a model answers becomes a move, so that no answer leads to a path that the graph does not
 * have. Nodes that the graph no longer has, as after a new version of the routine, are dropped first.
 */
export function moved(graph: RoutineGraph, path: RoutinePath, move: RoutineMove): RoutinePath | null {
  const events: Event[] = move.type === 'leave' ? [{ type: 'leave' }] : [];
  if (move.type === 'go-back') events.push({ type: 'back', to: move.to });
  const steps = move.type === 'follow' ? move.to : move.type === 'go-back' ? move.onward : [];
  for (const to of steps) events.push({ type: 'step', to });
  const known = knownPath(graph, path);
  if (events.length === 0) return known;
  const machine = machineOf(graph);
  let snapshot = machine.resolveState({ value: stateOf(known), context: { path: known } });
  for (const event of events) {
    if (!snapshot.can(event)) return null;
    [snapshot] = transition(machine, snapshot, event);
  }
  const { path: after }: { path: RoutinePath } = snapshot.context;
  // A fork is passed, never stood at.
  if (isFork(graph, after.at(-1) ?? END)) return null;
  return after.slice(-MAX_PATH_NODES);
}

/** The node at which a path stands; null: not entered, left or ended. */
export function currentNode(graph: RoutineGraph, path: RoutinePath): string | null {
  const last = path.at(-1) ?? null;
  return last !== null && graph.nodes.has(last) ? last : null;
}

/** A path without nodes that the graph does not have; empty when it stood at one of them. */
export function knownPath(graph: RoutineGraph, path: RoutinePath): RoutinePath {
  const last = path.at(-1);
  if (last !== null && last !== undefined && !isStep(graph, last)) return [];
  if (path.every((id) => id === null || isStep(graph, id))) return path;
  return path.filter((id) => id === null || isStep(graph, id));
}

/** Paths of a session, by routine id. */
export type RoutinePaths = Readonly<Record<string, RoutinePath>>;

/** Stored paths as far as the graphs have them: a turn of a new version of the documents begins with these. */
export function knownPaths(models: readonly Pick<RoutineModel, 'routine' | 'graph'>[], paths: RoutinePaths): RoutinePaths {
  const known = models.flatMap(({ routine: { id }, graph }) => {
    const path = ownValue(paths, id);
    return path === undefined ? [] : [[id, knownPath(graph, path)] as const];
  });
  return Object.fromEntries(known);
}

/** In the order of their last visit. */
export function visitedSteps(graph: RoutineGraph, path: RoutinePath): string[] {
  const visited = path.filter((id): id is string => id !== null && graph.nodes.has(id) && !isFork(graph, id));
  return [...new Set(visited.reverse())].reverse();
}

function isStep(graph: RoutineGraph, id: string): boolean {
  return id !== ROOT && id !== END && graph.nodes.has(id);
}

function stateOf(path: RoutinePath): string {
  const last = path.at(-1);
  return stateAt(last === undefined ? ROOT : (last ?? END));
}

/** XState has states in an object, in which a step called `__proto__` would be lost. */
function stateAt(nodeId: string): string {
  return `at-${nodeId}`;
}

/** A state for each node, with the transitions of its edges; in `end` are paths that have ended. */
function machineOf(graph: RoutineGraph): AnyStateMachine {
  const existing = machines.get(graph);
  if (existing !== undefined) return existing;
  const stepTo = (targets: Iterable<string>) =>
    [...new Set(targets)].map((target) => ({
      guard: { type: 'isTo' as const, params: { target } },
      target: stateAt(target),
      actions: { type: 'append' as const, params: { id: target === END ? null : target } },
    }));
  const targetsOf = (id: string) => (graph.edgesOf.get(id) ?? []).map(({ target }) => target);
  const toEnd = { target: stateAt(END), actions: { type: 'append' as const, params: { id: null } } };
  const states = [...graph.nodes.keys()].map((id) => {
    if (id === END) return [stateAt(id), { on: { step: stepTo(targetsOf(ROOT)) } }] as const;
    return [stateAt(id), { on: { step: stepTo(targetsOf(id)), leave: toEnd } }] as const;
  });
  const back = [...graph.nodes.keys()].map((target) => ({
    guard: { type: 'wasAt' as const, params: { target } },
    target: `.${stateAt(target)}`,
    actions: { type: 'append' as const, params: { id: target } },
  }));
  const machine = setup({
    types: { context: {} as { path: RoutinePath }, events: {} as Event, input: {} as { path: RoutinePath } },
    guards: {
      isTo: ({ event }, { target }: { target: string }) => event.type === 'step' && event.to === target,
      wasAt: ({ event, context }, { target }: { target: string }) => event.type === 'back' && event.to === target && context.path.includes(target),
    },
    actions: {
      append: assign({ path: ({ context: { path } }, { id }: { id: string | null }) => (id === null && path.at(-1) === null ? path : [...path, id]) }),
    },
  }).createMachine({
    id: 'routine',
    context: ({ input }) => ({ path: input.path }),
    initial: stateAt(ROOT),
    states: Object.fromEntries(states),
    on: { back },
  });
  machines.set(graph, machine);
  return machine;
}
