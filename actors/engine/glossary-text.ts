import type { StepView } from './step.ts';

/** Empty without terms. They come from the agent's documents, which are trusted. */
export function glossaryText(terms: StepView['glossary']): string {
  if (terms.length === 0) return '';
  const lines = terms.map(({ name, description, synonyms }) => `- ${name}${synonyms.length > 0 ? ` (also: ${synonyms.join(', ')})` : ''}: ${description}`);
  return `# Words that you should know\nThese meanings come before the common ones. Customers may misspell a word.\n${lines.join('\n')}`;
}
