import { testBundle } from '../../services/actor-host/test-support/commands.ts';
import { bundleBody, hashOf } from '../../shared/config/bundle-body.ts';
import type { Bundle } from '../../shared/config/load-bundle.ts';

/** After it, policies that do not apply yet are matched again. */
export const REEVALUATING_TOOL = 'shop:refund';
export const MAX_ITERATIONS = 3;

const policies = [
  { id: 'leak', version: 1, condition: 'the machine leaks', action: 'ask for a photo of the leak' },
  { id: 'refund', version: 1, condition: 'the customer wants a refund', action: 'say what became of it', tools: ['shop:find', REEVALUATING_TOOL] },
  { id: 'warranty', version: 1, condition: 'the machine is older than two years', action: 'name the terms' },
];

/** A routine with a tool step between chat steps. */
export const repair = {
  ...{ id: 'repair', version: 1, title: 'Repair', conditions: ['the machine is broken'], created_at: '2026-01-01T00:00:00Z' },
  steps: [
    { kind: 'chat', id: 'model', chat_state: 'Ask for the model.' },
    { kind: 'tool', id: 'look', tool_state: ['shop:find'] },
    { kind: 'chat', id: 'advise', chat_state: 'Say how it is repaired.' },
    { kind: 'chat', id: 'swap', chat_state: 'Send another machine.' },
  ],
  transitions: [
    { from: 'model', to: 'look' },
    { from: 'look', to: 'advise' },
    { from: 'advise', to: 'swap', when: 'It did not help' },
    { from: 'advise', to: 'end', when: 'It helped' },
  ],
};

/** The agent of `testBundle` with policies, tools of a policy and of a step, a routine, and a search by meaning. */
export const engineBundle: Bundle = (() => {
  const { manifest, documents } = testBundle.body;
  const { agent_config: config } = manifest;
  const context = {
    ...config.context,
    policies: policies.map(({ id, version }) => ({ id, version })),
    routines: [{ id: repair.id, version: repair.version }],
    reevaluation_tools: [{ id: REEVALUATING_TOOL }],
  };
  // Its model calls are those of the environment, as is the table.
  const search = {
    ...{ type: 'pgvector', hostname: 'kb', port: 5432, user: 'postgres', password: config.runtime.api_key, dbname: 'kb', sslmode: 'require', prompt: null },
    ...{ collection: 'docs', content_key: 'content', metadata_filter: {}, embedding_model: 'a/vectors', embedding_dimensions: 2, top_k: 5 },
  };
  const runtime = { ...config.runtime, policy_batch_size: 2, max_engine_iterations: MAX_ITERATIONS };
  const body = bundleBody.parse({
    manifest: { ...manifest, agent_config: { ...config, runtime, context, search } },
    documents: { ...documents, policies, routines: [...documents.routines, repair] },
  });
  return { hash: hashOf(body), body };
})();
