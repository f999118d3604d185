/** What a model accepts; the adapter corrects the table below from refusals. */
export interface ModelTraits {
  /** `budget`: thinking with a number of tokens; `adaptive`: an effort alone; `always`: the same, and it can't be switched off. */
  thinking: 'budget' | 'adaptive' | 'always';
  /** The highest effort below `max`; some models know no `xhigh`. */
  hasHighestEffort: boolean;
  /** `max`. */
  hasMaxEffort: boolean;
  /** An effort, beside thinking or without it. */
  takesEffort: boolean;
  /** `temperature`, `top_p`, `top_k`. */
  takesSampling: boolean;
  /** `output_config.format`, and `strict` tools. */
  takesSchema: boolean;
  /** `tool_choice` of `any` and `tool`. */
  takesForcedTool: boolean;
}

const OLDEST: ModelTraits = {
  thinking: 'budget',
  hasHighestEffort: false,
  hasMaxEffort: true,
  takesEffort: true,
  takesSampling: true,
  takesSchema: false,
  takesForcedTool: true,
};
const WITH_SCHEMA: ModelTraits = { ...OLDEST, takesSchema: true };
const ADAPTIVE: ModelTraits = { ...WITH_SCHEMA, thinking: 'adaptive' };
const NEWER: ModelTraits = { ...ADAPTIVE, hasHighestEffort: true, takesSampling: false };
const THINKING: ModelTraits = { ...NEWER, thinking: 'always' };
const NEWEST: ModelTraits = { ...THINKING, takesForcedTool: false };

/** The first row that fits counts. From npm @anthropic-ai/sdk 1.12.0 and @ai-sdk/anthropic 3.0.138 (`getModelCapabilities`). */
const ROWS: readonly (readonly [model: RegExp, traits: ModelTraits])[] = [
  [/claude-haiku-5/, NEWER],
  [/claude-(?:fable|mythos|opus|sonnet)-5-\d(?!\d)/, NEWEST],
  [/claude-(?:fable|mythos)-5/, THINKING],
  [/claude-(?:opus|sonnet)-5|claude-opus-4-[78](?!\d)/, NEWER],
  [/claude-(?:opus|sonnet)-4-6(?!\d)/, ADAPTIVE],
  [/claude-(?:opus|sonnet|haiku)-4-5(?!\d)|claude-opus-4-1(?!\d)/, WITH_SCHEMA],
  [/claude-(?:opus|sonnet)-4|claude-(?:instant|v?[23](?![\d]))/, OLDEST],
  // A name that is not known yet is a newer model.
  [/claude-/, NEWER],
];

/** Models of other vendors behind this API have what it had first. */
export function traitsOf(model: string): ModelTraits {
  return ROWS.find(([pattern]) => pattern.test(model))?.[1] ?? OLDEST;
}
