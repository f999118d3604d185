import { errorIn } from '../http-stream/to-error.ts';
import { describeError } from './describe-error.ts';
import type { ModelTraits } from './model-traits.ts';

const UNSUPPORTED = /not supported|unsupported|does not support|doesn't support|not permitted|deprecated|extra inputs|may not be|cannot be|must be "?adaptive/i;

/** Words of a refusal, and what they say of the model. The first that fits counts. */
const ADAPTATIONS: readonly (readonly [words: RegExp, traits: Partial<ModelTraits>])[] = [
  [/thinking.{0,40}disabled|disabled.{0,40}thinking/i, { thinking: 'always' }],
  [/thinking.{0,10}(?:type.{0,10})?enabled|budget_tokens/i, { thinking: 'adaptive' }],
  [/adaptive/i, { thinking: 'budget' }],
  [/xhigh/i, { hasHighestEffort: false }],
  [/effort.{0,20}["'`]max["'`]|["'`]max["'`].{0,20}effort/i, { hasMaxEffort: false }],
  // Refusals of a kind of thinking name the effort to use in its place; one that quotes an effort refuses that one alone.
  [/^(?!.*thinking)(?!.*["'`](?:low|medium|high)["'`]).*(?:output_?config.{0,3}effort|\beffort\b.{0,10}parameter)/is, { takesEffort: false }],
  [/output_?config: /i, { takesSchema: false, takesEffort: false }],
  [/temperature|top_?[pk]\b/i, { takesSampling: false }],
  [/output_?config(?!.{0,3}effort)|output_?format|structured output|\bstrict\b/i, { takesSchema: false }],
  [/tool_?choice/i, { takesForcedTool: false }],
];

/** The traits that a 400 shows; null for other errors, and when they are known already. @param text the error's body */
export function adaptTraits<Traits extends ModelTraits>(text: string, traits: Traits): Traits | null {
  const message = describeError(errorIn(text)).message ?? '';
  if (!UNSUPPORTED.test(message)) return null;
  for (const [words, changes] of ADAPTATIONS) {
    if (!words.test(message)) continue;
    const adapted = { ...traits, ...changes };
    return isSame(adapted, traits) ? null : adapted;
  }
  return null;
}

function isSame(one: ModelTraits, other: ModelTraits): boolean {
  return Object.entries(one).every(([name, value]) => Object.entries(other).some(([key, known]) => key === name && known === value));
}
