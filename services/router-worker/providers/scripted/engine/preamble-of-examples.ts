import type { Question } from './question.ts';

/** The first example that was not used; empty, which is no line, after the last one. */
export function preambleOfExamples({ items }: Question): object {
  const used = new Set(items.map((item) => item['used']));
  const next = items.find(({ example }) => typeof example === 'string' && !used.has(example));
  return { preamble: next?.['example'] ?? '' };
}
