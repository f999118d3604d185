import type { BundleBody } from '#shared/config/bundle-body.ts';
import type { Policy } from '#shared/contracts/documents/policy.ts';

/** What the engine reads of an agent's documents. */
export interface EngineDocuments {
  /** Enabled ones by id, in the manifest's order. */
  policies: ReadonlyMap<string, Policy>;
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

function readDocuments({ manifest, documents }: BundleBody): EngineDocuments | null {
  const { context, runtime } = manifest.agent_config;
  const policies = new Map<string, Policy>();
  for (const { id, version } of context.policies) {
    const policy = documents.policies.find((one) => one.id === id && one.version === version);
    if (policy?.enabled === true) policies.set(id, policy);
  }
  return policies.size === 0 ? null : { policies, batchSize: runtime.policy_batch_size };
}
