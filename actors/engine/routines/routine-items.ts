import { ownValue } from '#shared/own-value.ts';
import { type FollowUp, followUpsOf, isFork } from './follow-ups.ts';
import { END, ROOT } from './graph.ts';
import type { RoutineCall } from './routine-calls.ts';
import { visitedSteps } from './routine-machine.ts';
import type { RoutineModel } from './routine-model.ts';

/** A question about a routine with the texts that its prompt shows. */
export interface RoutineItem {
  routine: string;
  current: {
    /** Null: no step, but the point before the first ones. */
    does: string | null;
    /** Whether the agent has taken the step in an earlier turn. */
    isTaken: boolean;
  };
  /** Steps to go on to; their order gives the ordinals. */
  followUps: readonly (FollowUp & { does: string })[];
  /** Steps around those that were visited, which come first. */
  nodes: readonly ItemNode[];
}

interface ItemNode {
  id: string;
  does: string;
  isVisited: boolean;
  followUps: readonly { condition: string; id: string }[];
}

/** Edges from a visited step to what is still shown. */
const MAX_DEPTH = 5;
const MAX_NODES = 60;

/** What a call asks about, from the routine as it was when the call was made. */
export function routineItem(model: RoutineModel, { kind, path, at, prefix }: RoutineCall): RoutineItem {
  const { routine, graph, evaluation } = model;
  const isStep = at !== ROOT && !isFork(graph, at);
  const followUps = kind === 'next-step' ? followUpsOf(graph, at, evaluation?.value ?? null) : [];
  return {
    routine: [routine.title || routine.id, routine.description].filter((text) => text !== '').join(': '),
    current: { does: isStep ? textOf(model, at) : null, isTaken: isStep && prefix.length === 0 },
    followUps: followUps.map((followUp) => ({ ...followUp, does: textOf(model, followUp.path.at(-1) ?? END) })),
    nodes: kind === 'next-step' ? [] : nodesAround(model, visitedSteps(graph, path), kind === 'select-node' ? MAX_DEPTH : 0),
  };
}

/** The instruction by itself where the evaluation has one. */
function textOf({ graph, evaluation }: RoutineModel, id: string): string {
  const node = graph.nodes.get(id);
  if (node === undefined || node.kind === 'end') return 'The routine ends';
  return (evaluation === null ? undefined : ownValue(evaluation.value.nodes, id))?.internal_action ?? node.action ?? `Call ${node.tools.join(', ')}`;
}

/** The visited steps, and those within some edges of them; not what comes after a tool step that was not reached, since it depends on the result. */
function nodesAround(model: RoutineModel, visited: readonly string[], depth: number): ItemNode[] {
  const { graph } = model;
  const shown = new Set(visited);
  let level = [...visited];
  for (let distance = 0; distance < depth; distance += 1) {
    const next: string[] = [];
    for (const id of level) {
      if (graph.nodes.get(id)?.kind === 'tool' && !visited.includes(id)) continue;
      for (const { path } of followUpsOf(graph, id, null)) {
        const target = path.at(-1) ?? END;
        if (target === END || shown.has(target) || shown.size === MAX_NODES) continue;
        shown.add(target);
        next.push(target);
      }
    }
    level = next;
  }
  return [...shown].map((id) => ({
    id,
    does: textOf(model, id),
    isVisited: visited.includes(id),
    followUps: followUpsOf(graph, id, null).flatMap(({ condition, path }) => {
      const target = path.at(-1) ?? END;
      return shown.has(target) ? [{ condition, id: target }] : [];
    }),
  }));
}
