import { createHash } from 'node:crypto';
import type { z } from 'zod';
import { graphOf, ROOT } from '#actors/engine/routines/graph.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import type { journeyAnswer, journeyGraphAnswer } from '#shared/contracts/agent/answers.ts';
import type { Routine } from '#shared/contracts/documents/routine.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';

export type JourneyGraph = z.infer<typeof journeyGraphAnswer>;

/** The agent's routines under their names of the wire, where a routine is a journey. */
export class Journeys {
  readonly #routines: readonly Routine[];
  /** By journey id and by routine id. */
  readonly #byId = new Map<string, Routine>();

  constructor({ body }: Pick<Bundle, 'body'>) {
    this.#routines = body.documents.routines;
    // Of several versions the first enabled one counts, as for the routine itself.
    const first = [...this.#routines].sort((one, other) => Number(other.enabled) - Number(one.enabled));
    for (const routine of first) if (!this.#byId.has(routine.id)) this.#byId.set(routine.id, routine);
    for (const routine of this.#routines) this.#byId.set(journeyIdOf(routine), routine);
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  /** In the order of the routines' ids and versions. */
  list(): z.infer<typeof journeyAnswer>[] {
    return this.#routines.map(journeyOf);
  }

  /** @throws `routine.not_found` */
  graph(id: string): JourneyGraph {
    const routine = this.#byId.get(id);
    if (routine === undefined) throw noSuchJourney();
    const { nodes, edges } = graphOf(routine);
    return {
      journey: journeyOf(routine),
      nodes: [...nodes.values()].map((node) => ({ ...node, tools: [...node.tools], labels: [...node.labels], metadata: { ...node.metadata } })),
      edges: edges.map((edge) => ({ ...edge, metadata: {} })),
    };
  }
}

/** The same after every start: traces name it. */
function journeyIdOf({ id, version }: Pick<Routine, 'id' | 'version'>): string {
  return `jrn_${createHash('sha256').update(`${id}:${version}`).digest('hex').slice(0, 16)}`;
}

function journeyOf(routine: Routine): z.infer<typeof journeyAnswer> {
  const { id, version, title, description, kind, conditions, priority, labels, created_at } = routine;
  return {
    id: journeyIdOf(routine),
    routine_id: id,
    version,
    title,
    description,
    kind,
    conditions,
    root_id: ROOT,
    priority,
    labels,
    // Steps of autonomous routines are not evaluated.
    evaluation: kind === 'autonomous' ? 'done' : 'pending',
    created_at,
  };
}

export function noSuchJourney(): SwitchyardError {
  return new SwitchyardError('routine.not_found', 'there is no such routine');
}
