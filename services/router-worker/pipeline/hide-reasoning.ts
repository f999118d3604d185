import type { ProviderPart } from '#shared/contracts/router/provider-part.ts';
import type { Stage } from './stage.ts';

/** Removes reasoning and counts it, since it is billed. Excluded reasoning is no commit point: another endpoint may still answer. */
export const hideReasoning: Stage = {
  // `include_reasoning` is the legacy form.
  appliesTo: ({ reasoning, include_reasoning: included }) => reasoning?.exclude ?? included === false,
  parts: (answer) => (parts) =>
    parts.filter((part) => {
      const chars = reasoningCharsIn(part);
      answer.hiddenReasoningChars += chars;
      return chars === 0;
    }),
};

function reasoningCharsIn(part: ProviderPart): number {
  return part.type === 'reasoning-delta' ? part.text.length : 0;
}
