import type { BundleBody } from '#shared/config/bundle-body.ts';
import type { Policy } from '#shared/contracts/documents/policy.ts';
import { agentPolicies } from './agent-policies.ts';
import { type Evaluations, noEvaluations } from './evaluation/evaluation-set.ts';
import { type Likeness, likenessOf } from './likeness/likeness.ts';
import { type MatchDocuments, scopesOf } from './policies/candidates.ts';
import type { PolicyEvaluation } from './policies/policy-evaluation.ts';
import { type RelationshipGraph, relationshipGraph } from './relationships/relationship-graph.ts';
import { type SearchPlan, searchPlanOf } from './retrieval/search-plan.ts';
import { type RoutineModel, routineModels, stepVariables } from './routines/routine-model.ts';
import { serverOf } from './tools/turn-tools.ts';
import { inlineValues, noValues, type VariableValues } from './variables/variable-values.ts';

/** What the engine reads of an agent's documents. */
export interface EngineDocuments extends MatchDocuments {
  /** Conversational ones, with their graphs. */
  routineModels: readonly RoutineModel[];
  relationships: RelationshipGraph;
  /** Policies per matching call. */
  batchSize: number;
  /** Passes of matching and tools in a turn, at most. */
  maxIterations: number;
  /** Tools after which policies are matched again. */
  reevaluationTools: readonly string[];
  /** Whether each batch of tool calls is announced to the customer. */
  announcesTools: boolean;
  /** Whose tools policies and steps name. */
  toolServers: ReadonlySet<string>;
  /** Policies of their results are followed. */
  trustedServers: ReadonlySet<string>;
  /** Names the evaluations that are in these; null: there are none. */
  evaluationSet: string | null;
  /** By policy id. */
  policyEvaluations: ReadonlyMap<string, PolicyEvaluation>;
  /** Null: nothing is retrieved. */
  search: SearchPlan | null;
  /** Vectors of what messages are compared with; null: shared words decide. */
  likeness: Likeness | null;
}

/** By bundle, and by the set of evaluations. A bundle has few sets. */
const known = new WeakMap<BundleBody, Map<string | null, EngineDocuments | null>>();

/** Null for an agent without policies, conversational routines and search: its turns are one model call. */
export function engineDocumentsOf(body: BundleBody, evaluations: Evaluations = noEvaluations): EngineDocuments | null {
  const bySet = known.get(body) ?? new Map<string | null, EngineDocuments | null>();
  known.set(body, bySet);
  const found = bySet.get(evaluations.set);
  if (found !== undefined) return found;
  const read = readDocuments(body, evaluations);
  bySet.set(evaluations.set, read);
  return read;
}

/** With what the session's customer has as values of variables, in the steps of routines (rule 94). Not cached. */
export function documentsFor(body: BundleBody, evaluations: Evaluations, values: VariableValues): EngineDocuments | null {
  const documents = engineDocumentsOf(body, evaluations);
  if (documents === null || values === noValues || !stepVariables(body.documents).some((name) => values.has(name))) return documents;
  return { ...documents, routineModels: routineModels(body.documents, evaluations.routineOf, inlineValues(values)) };
}

function readDocuments(body: BundleBody, { set: evaluationSet, policyOf, routineOf, vectorsOf }: Evaluations): EngineDocuments | null {
  const { manifest, documents } = body;
  const { context, runtime, mcps } = manifest.agent_config;
  const search = searchPlanOf(manifest.agent_config.search);
  const models = routineModels(documents, routineOf);
  const policies = policiesOfTurns(body, new Set(models.map(({ routine }) => routine.id)));
  if (policies.length + models.length === 0 && search === null) return null;
  const routines = models.map(({ routine }) => routine);
  const relationships = relationshipGraph({ policies, routines }, context.relationships);
  const policyEvaluations = new Map(
    policies.flatMap((policy) => {
      const found = policyOf(policy);
      return found === null ? [] : [[policy.id, found] as const];
    }),
  );
  const toolsOfSteps = models.flatMap(({ graph }) => [...graph.nodes.values()].flatMap(({ tools }) => tools));
  return {
    ...{ evaluationSet, policyEvaluations, search, likeness: likenessOf(body, vectorsOf) },
    ...{ policies, routines, routineModels: models, relationships, batchSize: runtime.policy_batch_size },
    maxIterations: runtime.max_engine_iterations,
    reevaluationTools: context.reevaluation_tools.map(({ id }) => id),
    announcesTools: context.preamble?.announce_tools === true,
    toolServers: new Set([...policies.flatMap(({ tools }) => tools), ...toolsOfSteps].map(serverOf)),
    trustedServers: new Set(mcps.filter(({ trusted }) => trusted).map(({ id }) => id)),
  };
}

/** Without those that belong to routines of runs alone, or that are disabled: no turn has them active. @param followed ids of routines */
function policiesOfTurns(body: BundleBody, followed: ReadonlySet<string>): Policy[] {
  const policies = agentPolicies(body);
  const scopes = scopesOf({ policies, routines: body.documents.routines });
  return policies.filter(({ id }) => scopes.get(id)?.some((routineId) => followed.has(routineId)) ?? true);
}
