import type { EngineDocuments } from '../engine/engine-documents.ts';
import { relationshipGraph } from '../engine/relationships/relationship-graph.ts';

/** Of an agent without routines and tools. */
export function testEngineDocuments(given: Pick<EngineDocuments, 'policies'> & Partial<EngineDocuments>): EngineDocuments {
  const none = {
    evaluationSet: null,
    policyEvaluations: new Map(),
    search: null,
    likeness: null,
    reevaluationTools: [],
    toolServers: new Set<string>(),
    trustedServers: new Set<string>(),
  };
  const relationships = relationshipGraph({ policies: given.policies, routines: [] }, null);
  return { routines: [], routineModels: [], relationships, batchSize: 5, maxIterations: 5, announcesTools: false, ...none, ...given };
}
