import type { BundleBody } from '#shared/config/bundle-body.ts';
import { contentHash } from '#shared/config/content-hash.ts';
import type { Routine } from '#shared/contracts/documents/routine.ts';
import { agentPolicies } from '../agent-policies.ts';
import { glossaryTerms, isRanked, termText } from '../composition/nearest-terms.ts';
import { conversationalOf, routineText, scopesOf } from '../policies/candidates.ts';
import { MAX_COMPARED_CHARS } from './said-text.ts';

/** Texts of one call: half a megabyte of vectors with 3,072 dimensions. */
const BATCH_SIZE = 32;
/** Of an agent's vectors in a process: 1,365 texts with 3,072 dimensions. */
const MAX_VECTOR_BYTES = 16 * 1024 * 1024;
const BYTES_PER_FLOAT = 4;
/** Of how texts are made and cut into batches; another number has all vectors made anew. */
const VERSION = 1;

/** Texts whose vectors are made by one call. */
export interface TextBatch {
  /** Of its evaluation: the content, the model and the dimensions. */
  key: string;
  texts: readonly string[];
}

/** What is compared with what customers say, by vectors. */
export interface ComparedTexts {
  model: string;
  dimensions: number;
  /** Of the conversational routines, in their order; empty: likeness decides nothing about them. */
  routines: readonly TextBatch[];
  /** Of the glossaries' terms, in their order; empty: all are shown. */
  terms: readonly TextBatch[];
  /** They would take more memory than vectors may, so shared words decide. */
  isTooLarge: boolean;
}

const known = new WeakMap<BundleBody, ComparedTexts | null>();

/** Null: the agent has no `embedding_model`, or nothing to compare. */
export function comparedTexts(body: BundleBody): ComparedTexts | null {
  const found = known.get(body);
  if (found !== undefined) return found;
  const made = textsOf(body);
  known.set(body, made);
  return made;
}

function textsOf(body: BundleBody): ComparedTexts | null {
  const { search } = body.manifest.agent_config;
  if (search?.type !== 'pgvector') return null;
  const { embedding_model: model, embedding_dimensions: dimensions } = search;
  const terms = glossaryTerms(body);
  const texts = { routines: comparedRoutines(body).map(routineText), terms: isRanked(terms) ? terms.map(termText) : [] };
  const count = texts.routines.length + texts.terms.length;
  if (count === 0) return null;
  const isTooLarge = count * dimensions * BYTES_PER_FLOAT > MAX_VECTOR_BYTES;
  const batches = (all: readonly string[]) => (isTooLarge ? [] : batchesOf(all, { model, dimensions }));
  return { model, dimensions, routines: batches(texts.routines), terms: batches(texts.terms), isTooLarge };
}

/** Those whose vectors are evaluated. */
export function textBatches(body: BundleBody): TextBatch[] {
  const { routines = [], terms = [] } = comparedTexts(body) ?? {};
  return [...routines, ...terms];
}

/** All conversational ones, where the policies of several may be judged; else none. Of several versions the first, as turns follow them. */
function comparedRoutines(body: BundleBody): Routine[] {
  const routines = conversationalOf(body.documents).filter(({ id }, index, all) => all.findIndex((other) => other.id === id) === index);
  const owners = new Set([...scopesOf({ policies: agentPolicies(body), routines }).values()].flat());
  return routines.filter(({ id }) => owners.has(id)).length > 1 ? routines : [];
}

function batchesOf(texts: readonly string[], about: { model: string; dimensions: number }): TextBatch[] {
  return Array.from({ length: Math.ceil(texts.length / BATCH_SIZE) }, (_, index) => {
    const batch = texts.slice(index * BATCH_SIZE, (index + 1) * BATCH_SIZE).map((text) => text.slice(0, MAX_COMPARED_CHARS));
    return { key: contentHash({ of: ['vectors', VERSION], ...about, texts: batch }), texts: batch };
  });
}
