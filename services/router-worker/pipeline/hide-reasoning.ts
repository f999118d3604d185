import type { ProviderPart, ReasoningPart } from '#shared/contracts/router/provider-part.ts';
import type { Stage } from './stage.ts';

/** Removes reasoning and counts it, since it is billed. Excluded reasoning is no commit point: another endpoint may still answer. */
export const hideReasoning: Stage = {
  // `include_reasoning` is the legacy form.
  appliesTo: ({ reasoning, include_reasoning: included }) => reasoning?.exclude ?? included === false,
  parts: (answer) => (parts) =>
    parts.filter((part) => {
      if (!isReasoning(part)) return true;
      if ('text' in part) answer.hiddenReasoningChars += part.text.length;
      return false;
    }),
};

function isReasoning(part: ProviderPart): part is ReasoningPart {
  return part.type.startsWith('reasoning-');
}
