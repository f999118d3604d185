import { bundleBody, hashOf } from '#shared/config/bundle-body.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import { testBundle } from './commands.ts';

const policies = [
  { id: 'leak', version: 1, condition: 'the machine leaks', action: 'ask for a photo of the leak' },
  { id: 'refund', version: 1, condition: 'the customer wants a refund', action: 'ask for the order number' },
  { id: 'angry', version: 1, condition: 'the customer is angry', action: 'apologise', criticality: 'high' },
];

/** The same agent with policies, two of them in a call. */
export const policyBundle: Bundle = (() => {
  const { manifest, documents } = testBundle.body;
  const { agent_config: config } = manifest;
  const context = { ...config.context, policies: policies.map(({ id, version }) => ({ id, version })) };
  const runtime = { ...config.runtime, policy_batch_size: 2 };
  const body = bundleBody.parse({ manifest: { ...manifest, agent_config: { ...config, runtime, context } }, documents: { ...documents, policies } });
  return { hash: hashOf(body), body };
})();
