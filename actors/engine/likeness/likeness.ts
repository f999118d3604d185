import type { BundleBody } from '#shared/config/bundle-body.ts';
import { MAX_NEAREST } from '../composition/nearest-terms.ts';
import { conversationalOf, followedOf, type MatchDocuments } from '../policies/candidates.ts';
import { comparedTexts, type TextBatch } from './compared-texts.ts';
import type { SaidText } from './said-text.ts';
import { nearestIn, type VectorTable, vectorsIn } from './vector-table.ts';

/** Vectors of an agent's texts. */
export interface Likeness {
  dimensions: number;
  /** Null, as below: shared words decide. */
  routines: VectorTable | null;
  terms: VectorTable | null;
}

type LikenessDocuments = Pick<MatchDocuments, 'routines'> & { likeness: Likeness | null };

/** @param vectorsOf of a batch; null: they are pending or have failed @returns null: no vectors are compared */
export function likenessOf(body: BundleBody, vectorsOf: (batch: TextBatch) => Float32Array | null): Likeness | null {
  const compared = comparedTexts(body);
  if (compared === null) return null;
  const { dimensions } = compared;
  const tableOf = (batches: readonly TextBatch[]): VectorTable | null => {
    const parts = batches.flatMap((batch) => vectorsOf(batch) ?? []);
    return batches.length > 0 && parts.length === batches.length ? { dimensions, parts } : null;
  };
  const [routines, terms] = [tableOf(compared.routines), tableOf(compared.terms)];
  return routines === null && terms === null ? null : { dimensions, routines, terms };
}

/**
 * What a turn that begins has to have vectors of. Empty: likeness decides nothing, or shared words do.
 * @param paths without nodes that the routines' graphs do not have
 */
export function saidTextsFor(documents: LikenessDocuments, paths: Parameters<typeof followedOf>[1]): SaidText[] {
  const { routines = null, terms = null } = documents.likeness ?? {};
  return [
    ...(routines !== null && followedOf(conversationalOf(documents), paths).length === 0 ? (['message'] as const) : []),
    ...(terms !== null ? (['talk'] as const) : []),
  ];
}

/** The routine that the message is most like, and the places of the terms nearest to the talk. */
export interface Compared {
  /** Null: it is like none. Absent: it was not compared. */
  likeliest?: string | null;
  /** Absent: they were not compared. */
  terms?: number[];
}

/** @param vectors of the texts, in base64 @returns null: they are no vectors of these texts that can be compared */
export function compare(documents: LikenessDocuments, texts: readonly SaidText[], vectors: readonly string[]): Compared | null {
  const { likeness } = documents;
  if (likeness === null || vectors.length !== texts.length) return null;
  const found: Compared = {};
  for (const [index, which] of texts.entries()) {
    const vector = vectorsIn(vectors[index] ?? '', 1, likeness.dimensions);
    const table = which === 'message' ? likeness.routines : likeness.terms;
    if (table === null || vector?.some((value) => value !== 0) !== true) return null;
    if (which === 'talk') found.terms = nearestIn(table, vector, MAX_NEAREST).sort((left, right) => left - right);
    else found.likeliest = conversationalOf(documents)[nearestIn(table, vector, 1)[0] ?? -1]?.id ?? null;
  }
  return found;
}
