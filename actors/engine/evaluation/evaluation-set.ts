import { z } from 'zod';
import type { BundleBody } from '#shared/config/bundle-body.ts';
import { contentHash } from '#shared/config/content-hash.ts';
import type { EvaluationRow } from '#shared/config/evaluation-store.ts';
import type { Policy } from '#shared/contracts/documents/policy.ts';
import type { Routine } from '#shared/contracts/documents/routine.ts';
import { comparedTexts, type TextBatch, textBatches } from '../likeness/compared-texts.ts';
import { vectorsIn } from '../likeness/vector-table.ts';
import type { PolicyEvaluation } from '../policies/policy-evaluation.ts';
import { routineEvaluation } from '../routines/routine-evaluation.ts';
import type { RoutineModel } from '../routines/routine-model.ts';
import { policyResult } from './evaluate-policy.ts';
import { evaluationModel, policyKey, routineKey } from './evaluation-keys.ts';

/** Of a batch of texts: their vectors behind each other, in base64 of 32-bit floats, little endian. */
export const vectorsResult = z.object({ vectors: z.string() });

/** The evaluations that a bundle's documents have at a time, by their keys. Named by its hash, so that a turn goes on with the texts with which it began. */
export const evaluationSet = z.object({ of: z.string(), hashes: z.array(z.string()) });
export type EvaluationSet = z.infer<typeof evaluationSet>;

/** What turns read of evaluations. */
export interface Evaluations {
  /** Names them in rows and effects; null: there are none. */
  set: string | null;
  policyOf(policy: Policy): PolicyEvaluation | null;
  routineOf(routine: Routine): RoutineModel['evaluation'];
  /** Null: pending or failed. */
  vectorsOf(batch: TextBatch): Float32Array | null;
}

export const noEvaluations: Evaluations = { set: null, policyOf: () => null, routineOf: () => null, vectorsOf: () => null };

/** Keys of the documents that are evaluated. */
export function documentKeys(body: BundleBody): string[] {
  const { manifest, documents } = body;
  const model = evaluationModel(manifest.agent_config);
  const keys = [
    ...documents.routines.map((routine) => routineKey(routine, model)),
    ...documents.policies.map((policy) => policyKey(policy, model)),
    ...textBatches(body).map(({ key }) => key),
  ];
  return [...new Set(keys.filter((key) => key !== null))].sort();
}

/** By which the sets of these documents are found. */
export function setKeyOf(keys: readonly string[]): string {
  return contentHash({ of: 'documents', keys });
}

/** @param hashes of results */
export function setOf(keys: readonly string[], hashes: readonly string[]): { hash: string; set: EvaluationSet } {
  const set = { of: setKeyOf(keys), hashes: [...hashes].sort() };
  return { hash: contentHash(set), set };
}

/**
 * @param rows of the set, by hash; those that this release can't read count as absent
 * @param model by which the documents were evaluated
 * @param vectors of texts, by the keys of their batches
 */
export function evaluationsOf(
  set: string,
  rows: ReadonlyMap<string, EvaluationRow>,
  model: string,
  vectors: ReadonlyMap<string, Float32Array> = new Map(),
): Evaluations {
  const resultOf = (key: string | null) => (key === null ? undefined : rows.get(key)?.result);
  return {
    set,
    policyOf: (policy) => policyResult.safeParse(resultOf(policyKey(policy, model))).data ?? null,
    routineOf: (routine) => {
      const hash = routineKey(routine, model);
      const { data } = routineEvaluation.safeParse(resultOf(hash));
      return hash === null || data === undefined ? null : { hash, value: data };
    },
    vectorsOf: ({ key }) => vectors.get(key) ?? null,
  };
}

/** Of a bundle's texts, by the keys of their batches. @param rows by hash; those that can't be read count as absent */
export function vectorsAmong(body: BundleBody, rows: ReadonlyMap<string, EvaluationRow>): Map<string, Float32Array> {
  const { dimensions = 0 } = comparedTexts(body) ?? {};
  const found = textBatches(body).flatMap(({ key, texts }) => {
    const { data } = vectorsResult.safeParse(rows.get(key)?.result);
    const vectors = data === undefined ? null : vectorsIn(data.vectors, texts.length, dimensions);
    return vectors === null ? [] : [[key, vectors] as const];
  });
  return new Map(found);
}
