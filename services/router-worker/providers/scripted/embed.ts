import type { VectorCall, VectorInput, Vectors } from '../provider.ts';
import { contentWords } from './words.ts';

const DIMENSIONS = 256;
const GRAM_CHARS = 3;
/** A word says more of a text than three of its letters. */
const WORD_WEIGHT = 3;
const CHARS_PER_TOKEN = 4;
/** FNV-1a. */
const OFFSET = 0x811c9dc5;
const PRIME = 0x01000193;

/** Vectors by hashes of words and of groups of letters: equal for equal texts, near for texts that share words, and always of length 1. */
export function embed({ inputs, dimensions }: Pick<VectorCall, 'inputs' | 'dimensions'>): Vectors {
  const texts = inputs.map(textOf);
  return {
    vectors: texts.map((text) => vectorOf(text, dimensions ?? DIMENSIONS)),
    promptTokens: texts.reduce((sum, text) => sum + Math.ceil(text.length / CHARS_PER_TOKEN), 0),
  };
}

function vectorOf(text: string, dimensions: number): Float32Array {
  const vector = new Float32Array(dimensions);
  const add = (feature: string, weight: number) => {
    const hash = hashOf(feature);
    const at = hash % dimensions;
    // The sign lets features that share a place cancel out on average.
    vector[at] = (vector[at] ?? 0) + (hash & 0x40000000 ? weight : -weight);
  };
  const letters = ` ${text.toLowerCase().replaceAll(/\s+/g, ' ').trim()} `;
  for (let at = 0; at + GRAM_CHARS <= letters.length; at += 1) add(letters.slice(at, at + GRAM_CHARS), 1);
  for (const word of contentWords(text)) add(`word ${word}`, WORD_WEIGHT);
  const length = Math.hypot(...vector);
  // A text whose features cancel out, or that has none.
  if (length === 0) vector[hashOf(text) % dimensions] = 1;
  else for (const [at, value] of vector.entries()) vector[at] = value / length;
  return vector;
}

function hashOf(text: string): number {
  let hash = OFFSET;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), PRIME) >>> 0;
  // The low bits of short texts differ little.
  return (hash ^ (hash >>> 15)) >>> 0;
}

/** Its texts, for a model that takes no other content. */
export function textOf(input: VectorInput): string {
  if (typeof input === 'string') return input;
  return input.flatMap((item) => (typeof item === 'object' && item.type === 'text' ? [item.text] : [])).join('\n');
}
