import { setTimeout as delay } from 'node:timers/promises';
import type { ModelCalls } from '#actors/effects/model-calls.ts';
import { evaluatePolicy, policyResult } from '#actors/engine/evaluation/evaluate-policy.ts';
import { evaluationModel, policyItem, policyKey, routineKey } from '#actors/engine/evaluation/evaluation-keys.ts';
import { setKeyOf, setOf } from '#actors/engine/evaluation/evaluation-set.ts';
import { comparedTexts, textBatches } from '#actors/engine/likeness/compared-texts.ts';
import type { EvaluationStore } from '#shared/config/evaluation-store.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import { ulid } from '#shared/ids.ts';
import type { Database } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { traceContextOf } from '#shared/telemetry/trace-context.ts';
import { type EmbedTexts, textEmbedder } from './embed-texts.ts';
import { type EvaluateItem, itemEvaluator } from './evaluate-item.ts';
import { evaluateRoutine } from './evaluate-routine.ts';
import { acquireLease, releaseLease } from './lease.ts';
import { Slots } from './slots.ts';

const LEASE_KEY = 'document-evaluation';

const evaluationTimes = {
  /** Renewed three times as often. A host that is paused for longer may find that another has done the work again; what was stored first stays. */
  leaseMs: 60_000,
  /** Between looks at what another host evaluates. */
  lookMs: 5_000,
  /** After a round with failures, or without the database; then the next start tries again. */
  retriesMs: [60_000, 5 * 60_000, 30 * 60_000] as readonly number[],
  /** Between renewals of what is in use: a part of the shortest retention, a day. */
  renewMs: 6 * 60 * 60_000,
  stopWithinMs: 1_000,
};

export interface EvaluateDocumentsDeps {
  bundle: Bundle;
  modelCalls: Pick<ModelCalls, 'ask' | 'embed'>;
  /** Of model calls. */
  parallelism: number;
  database: Database;
  store: EvaluationStore;
  log: Log;
  times?: Partial<typeof evaluationTimes>;
}

interface Evaluators {
  item: EvaluateItem;
  vectors: EmbedTexts;
}

interface Document {
  hash: string;
  kind: 'routine' | 'policy' | 'vectors';
  id: string;
  evaluate(evaluators: Evaluators): Promise<unknown>;
}

/**
 * Evaluates the agent's routines and policies, and has vectors made of its texts, in the background, each content once: a result is stored, and read by every process. Turns use the documents'
 * own texts until then. Of several hosts one evaluates. What is found is kept from the sweep until the stop. `done` is the number of documents without a result, and null on a stop.
 */
export function startDocumentEvaluation(deps: EvaluateDocumentsDeps): { done: Promise<number | null>; stop(): Promise<void> } {
  const times = { ...evaluationTimes, ...deps.times };
  const stopping = new AbortController();
  const { signal } = stopping;
  const done = rounds(deps, times, signal).catch((error: unknown) => {
    if (!signal.aborted) deps.log.warn({ err: error }, 'the evaluation of documents has stopped; the next start continues it');
    return null;
  });
  const renewing = renewals(deps, times, signal).catch(() => {});
  return {
    done,
    stop: async () => {
      stopping.abort();
      await Promise.race([Promise.all([done, renewing]), delay(times.stopWithinMs, undefined, { ref: false })]);
    },
  };
}

async function rounds(deps: EvaluateDocumentsDeps, times: typeof evaluationTimes, signal: AbortSignal): Promise<number> {
  const documents = documentsOf(deps.bundle);
  if (comparedTexts(deps.bundle.body)?.isTooLarge === true)
    deps.log.warn({ bundle: deps.bundle.hash }, 'routines and glossaries have too many texts for vectors in memory: shared words decide what is like what');
  if (documents.length === 0) return 0;
  const lease = { key: LEASE_KEY, owner: ulid(), ms: times.leaseMs };
  for (let tries = 0; ; ) {
    let missing: number | null = null;
    try {
      missing = (await missingOf(deps.store, documents)).length;
      if (missing === 0) {
        await useStored(deps.store, documents);
        return 0;
      }
      if (!(await acquireLease(deps.database, lease))) {
        await delay(times.lookMs, undefined, { signal });
        continue;
      }
      missing = await leased(deps, documents, { lease, signal });
      if (missing === 0) return 0;
    } catch (error) {
      signal.throwIfAborted();
      deps.log.warn({ err: error }, 'a round of the evaluation of documents failed; it is repeated after a pause, or at the next start');
    }
    const pauseMs = times.retriesMs[tries];
    tries += 1;
    if (pauseMs === undefined) return missing ?? documents.length;
    await delay(pauseMs, undefined, { signal });
  }
}

/** A process may run for longer than the retention, and another's sweep deletes what no process has used for so long. Ends with the signal. */
async function renewals({ bundle, store, log }: EvaluateDocumentsDeps, { renewMs }: typeof evaluationTimes, signal: AbortSignal): Promise<void> {
  const documents = documentsOf(bundle);
  while (documents.length > 0) {
    await delay(renewMs, undefined, { signal, ref: false });
    await useStored(store, documents).catch((error: unknown) => log.warn({ err: error }, 'evaluations in use could not be renewed; the next time tries again'));
  }
}

interface Leased {
  lease: { key: string; owner: string; ms: number };
  signal: AbortSignal;
}

/** One round, by the host that has the lease. @returns the number of documents without a result */
async function leased(deps: EvaluateDocumentsDeps, documents: readonly Document[], { lease, signal }: Leased): Promise<number> {
  const { database, store, log } = deps;
  const renewing = setInterval(() => {
    acquireLease(database, lease).catch((error: unknown) => log.warn({ err: error }, 'the lease of the evaluation could not be renewed'));
  }, lease.ms / 3).unref();
  try {
    const missing = await missingOf(store, documents);
    // Before anything is asked: a model that does not answer, or never does, holds back nothing of what earlier starts have found.
    await useStored(store, documents);
    const { llms } = deps.bundle.body.manifest.agent_config;
    const { modelCalls } = deps;
    const common = { slots: new Slots(deps.parallelism), traceparent: traceContextOf(null).traceparent, signal, log };
    const models = { first: evaluationModel({ llms }), fallback: llms.evaluation_fallback };
    const evaluators = { item: itemEvaluator({ modelCalls, models, store, ...common }), vectors: textEmbedder({ modelCalls, ...common }) };
    const outcomes = await Promise.all(missing.map((document) => evaluated(document, evaluators, { store, log, signal })));
    signal.throwIfAborted();
    await useStored(store, documents);
    const failed = outcomes.filter((isDone) => !isDone).length;
    log.info({ documents: missing.length, failed }, 'documents were evaluated');
    return failed;
  } finally {
    clearInterval(renewing);
    await releaseLease(database, lease).catch((error: unknown) =>
      log.warn({ err: error }, 'the lease of the evaluation could not be released; it expires by itself'),
    );
  }
}

/** Whether it has a result. A failure is stored, too: the graph of a routine shows it. */
async function evaluated(
  { hash, kind, id, evaluate }: Document,
  evaluators: Evaluators,
  { store, log, signal }: Pick<EvaluateDocumentsDeps, 'store' | 'log'> & { signal: AbortSignal },
): Promise<boolean> {
  try {
    const result = await evaluate(evaluators);
    // The row of a policy is that of its question.
    if (kind !== 'policy') await store.store({ hash, kind, result });
    return true;
  } catch (error) {
    if (signal.aborted) return false;
    log.warn({ err: error, kind, id }, 'a document could not be evaluated; turns use the texts of the document');
    await store.store({ hash, kind, result: null });
    return false;
  }
}

/** Names what the documents have by now, for the turns to come, and keeps it from the sweep; a failure of one of them does not hold back the others. */
async function useStored(store: EvaluationStore, documents: readonly Document[]): Promise<void> {
  const keys = documents.map(({ hash }) => hash).sort();
  const found = await store.withResult(keys);
  const { hash, set } = setOf(
    keys,
    keys.filter((key) => found.has(key)),
  );
  if (set.hashes.length === 0) return;
  if ((await store.newestSet(setKeyOf(keys))) !== hash) await store.store({ hash, kind: 'set', result: set });
  await store.use([...set.hashes, hash]);
}

/** Documents without a stored result. */
async function missingOf(store: EvaluationStore, documents: readonly Document[]): Promise<Document[]> {
  const found = await store.withResult(documents.map(({ hash }) => hash));
  return documents.filter(({ hash }) => !found.has(hash));
}

function documentsOf({ body }: Bundle): Document[] {
  const { manifest, documents } = body;
  const model = evaluationModel(manifest.agent_config);
  const found = new Map<string, Document>();
  for (const routine of documents.routines) {
    const hash = routineKey(routine, model);
    if (hash !== null) found.set(hash, { hash, kind: 'routine', id: routine.id, evaluate: ({ item }) => evaluateRoutine(routine, item) });
  }
  for (const policy of documents.policies) {
    const [hash, item] = [policyKey(policy, model), policyItem(policy)];
    if (hash === null || item === null) continue;
    found.set(hash, { hash, kind: 'policy', id: policy.id, evaluate: (evaluators) => evaluators.item('policy', evaluatePolicy, item, policyResult) });
  }
  const { model: embeddingModel = '', dimensions = 0 } = comparedTexts(body) ?? {};
  for (const { key: hash, texts } of textBatches(body)) {
    const about = { model: embeddingModel, dimensions, texts };
    found.set(hash, { hash, kind: 'vectors', id: hash, evaluate: ({ vectors }) => vectors(about) });
  }
  return [...found.values()];
}
