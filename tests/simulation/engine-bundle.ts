import { documentKeys, setOf } from '../../actors/engine/evaluation/evaluation-set.ts';
import { textBatches } from '../../actors/engine/likeness/compared-texts.ts';
import { testBundle } from '../../services/actor-host/test-support/commands.ts';
import { bundleBody, hashOf } from '../../shared/config/bundle-body.ts';
import type { EvaluationRow } from '../../shared/config/evaluation-store.ts';
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

/** The same agent with so many terms that vectors choose those of its prompts. */
export const comparingBundle: Bundle = (() => {
  const { manifest, documents } = engineBundle.body;
  const { agent_config: config } = manifest;
  const terms = Array.from({ length: 51 }, (_, index) => ({ name: `word${index}`, description: 'a word' }));
  const context = { ...config.context, glossaries: [{ id: 'words', version: 1 }] };
  const glossaries = [{ id: 'words', version: 1, terms }];
  const body = bundleBody.parse({ manifest: { ...manifest, agent_config: { ...config, context } }, documents: { ...documents, glossaries } });
  return { hash: hashOf(body), body };
})();

/** The vectors of its terms, as an evaluation has stored them. */
export const comparingEvaluations: readonly EvaluationRow[] = (() => {
  const rows = textBatches(comparingBundle.body).map(({ key: hash, texts }) => {
    const vectors = Buffer.from(new Float32Array(texts.flatMap((_, index) => [index % 2, 1 - (index % 2)])).buffer).toString('base64');
    return { hash, kind: 'vectors' as const, result: { vectors } };
  });
  const found = rows.map(({ hash }) => hash);
  const { hash, set } = setOf(documentKeys(comparingBundle.body), found);
  return [...rows, { hash, kind: 'set', result: set }];
})();
