import type { BundleBody } from '#shared/config/bundle-body.ts';
import type { Policy } from '#shared/contracts/documents/policy.ts';
import type { MatchDocuments } from './policies/candidates.ts';

/** What the engine reads of an agent's documents. */
export interface EngineDocuments extends MatchDocuments {
  /** Policies per matching call. */
  batchSize: number;
}

const known = new WeakMap<BundleBody, EngineDocuments | null>();

/** Null for an agent without policies: its turns are one model call. */
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
  return policies.length === 0 ? null : { policies, routines: [], batchSize: runtime.policy_batch_size };
}
