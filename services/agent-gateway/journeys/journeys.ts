import { createHash } from 'node:crypto';
import type { z } from 'zod';
import { evaluationModel, routineKey } from '#actors/engine/evaluation/evaluation-keys.ts';
import { graphOf, ROOT } from '#actors/engine/routines/graph.ts';
import { type NodeEvaluation, type RoutineEvaluation, routineEvaluation } from '#actors/engine/routines/routine-evaluation.ts';
import type { EvaluationStore } from '#shared/config/evaluation-store.ts';
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
  readonly #evaluations: Pick<EvaluationStore, 'read'>;
  readonly #keyOf: (routine: Routine) => string | null;

  constructor({ body }: Pick<Bundle, 'body'>, evaluations: Pick<EvaluationStore, 'read'>) {
    this.#routines = body.documents.routines;
    this.#evaluations = evaluations;
    const model = evaluationModel(body.manifest.agent_config);
    this.#keyOf = (routine) => routineKey(routine, model);
    // Of several versions the first enabled one counts, as for the routine itself.
    const first = [...this.#routines].sort((one, other) => Number(other.enabled) - Number(one.enabled));
    for (const routine of first) if (!this.#byId.has(routine.id)) this.#byId.set(routine.id, routine);
    for (const routine of this.#routines) this.#byId.set(journeyIdOf(routine), routine);
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  /** In the order of the routines' ids and versions. */
  async list(): Promise<z.infer<typeof journeyAnswer>[]> {
    const evaluated = await this.#evaluated(this.#routines);
    return this.#routines.map((routine) => journeyOf(routine, evaluated(routine)));
  }

  /** With what a model has found out about its steps. @throws `routine.not_found` */
  async graph(id: string): Promise<JourneyGraph> {
    const routine = this.#byId.get(id);
    if (routine === undefined) throw noSuchJourney();
    return journeyGraphOf(routine, (await this.#evaluated([routine]))(routine));
  }

  /** Of all routines, in the order of `list`. */
  async graphs(): Promise<JourneyGraph[]> {
    const evaluated = await this.#evaluated(this.#routines);
    return this.#routines.map((routine) => journeyGraphOf(routine, evaluated(routine)));
  }

  async #evaluated(routines: readonly Routine[]): Promise<(routine: Routine) => Evaluated> {
    const rows = await this.#evaluations.read(routines.flatMap((routine) => this.#keyOf(routine) ?? []));
    return (routine) => {
      const key = this.#keyOf(routine);
      const row = key === null ? undefined : rows.get(key);
      // Nothing is asked about autonomous routines.
      if (row === undefined) return routine.kind === 'autonomous' ? 'done' : 'pending';
      if (row.result === null) return 'failed';
      const { success, data } = routineEvaluation.safeParse(row.result);
      return success ? data : 'pending';
    };
  }
}

type Evaluated = RoutineEvaluation | 'pending' | 'failed' | 'done';

function journeyGraphOf(routine: Routine, evaluation: Evaluated): JourneyGraph {
  const found = typeof evaluation === 'string' ? {} : evaluation.nodes;
  const { nodes, edges } = graphOf(routine);
  return {
    journey: journeyOf(routine, evaluation),
    nodes: [...nodes.values()].map((node) => {
      return { ...node, tools: [...node.tools], labels: [...node.labels], metadata: { ...node.metadata, ...metadataOf(found[node.id]) } };
    }),
    edges: edges.map((edge) => ({ ...edge, metadata: {} })),
  };
}

function metadataOf(evaluation: NodeEvaluation | undefined): Record<string, unknown> {
  if (evaluation === undefined) return {};
  const { follow_ups: followUps, ...found } = evaluation;
  return { ...found, 'journey_node.reachable_follow_ups': followUps };
}

/** The same after every start: traces name it. */
function journeyIdOf({ id, version }: Pick<Routine, 'id' | 'version'>): string {
  return `jrn_${createHash('sha256').update(`${id}:${version}`).digest('hex').slice(0, 16)}`;
}

function journeyOf(routine: Routine, evaluation: Evaluated): z.infer<typeof journeyAnswer> {
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
    evaluation: typeof evaluation === 'string' ? evaluation : 'done',
    created_at,
  };
}

export function noSuchJourney(): SwitchyardError {
  return new SwitchyardError('routine.not_found', 'there is no such routine');
}
