import type { BundleBody } from '#shared/config/bundle-body.ts';
import type { Policy } from '#shared/contracts/documents/policy.ts';
import type { MatchDocuments } from './policies/candidates.ts';
import { type RelationshipGraph, relationshipGraph } from './relationships/relationship-graph.ts';
import { type RoutineModel, routineModels } from './routines/routine-model.ts';

/** What the engine reads of an agent's documents. */
export interface EngineDocuments extends MatchDocuments {
  /** Conversational ones, with their graphs. */
  routineModels: readonly RoutineModel[];
  relationships: RelationshipGraph;
  /** Policies per matching call. */
  batchSize: number;
}

const known = new WeakMap<BundleBody, EngineDocuments | null>();

/** Null for an agent without policies and conversational routines: its turns are one model call. */
export function engineDocumentsOf(body: BundleBody): EngineDocuments | null {
  const found = known.get(body);
  if (found !== undefined) return found;
  const read = readDocuments(body);
  known.set(body, read);
  return read;
}

/** Those of the manifest, enabled and in its order. */
function readDocuments({ manifest, documents }: BundleBody): EngineDocuments | null {
  const { context, runtime } = manifest.agent_config;
  const policies = context.policies.flatMap(({ id, version }): Policy[] => {
    const policy = documents.policies.find((one) => one.id === id && one.version === version);
    return policy?.enabled === true ? [policy] : [];
  });
  const models = routineModels(documents, () => null);
  if (policies.length + models.length === 0) return null;
  const routines = models.map(({ routine }) => routine);
  const relationships = relationshipGraph({ policies, routines }, context.relationships);
  return { policies, routines, routineModels: models, relationships, batchSize: runtime.policy_batch_size };
}
