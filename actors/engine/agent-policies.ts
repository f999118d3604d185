import type { BundleBody } from '#shared/config/bundle-body.ts';
import type { Policy } from '#shared/contracts/documents/policy.ts';

/** Those of the manifest, enabled and in its order. */
export function agentPolicies({ manifest, documents }: BundleBody): Policy[] {
  return manifest.agent_config.context.policies.flatMap(({ id, version }): Policy[] => {
    const policy = documents.policies.find((one) => one.id === id && one.version === version);
    return policy?.enabled === true ? [policy] : [];
  });
}
