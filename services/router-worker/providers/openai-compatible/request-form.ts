import type { Extension } from './extensions.ts';

/** From the lowest. */
export const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const;
export type Effort = (typeof EFFORTS)[number];

/** How the body of a request differs between servers of this API. */
export interface RequestForm {
  /** The name of the token limit to try first. */
  maxTokensField: 'max_tokens' | 'max_completion_tokens';
  extensions: ReadonlySet<Extension>;
  /** Parameters that the server refuses whatever the model. With `require_parameters` they are sent, and the caller gets the refusal. */
  leftOut: ReadonlySet<string>;
  /** Parameters by our name that have another name there. */
  renamed: Readonly<Record<string, string>>;
  /** Fields of messages that the server refuses. */
  messageFieldsLeftOut: ReadonlySet<string>;
  /** False: usage comes unasked, and `stream_options` is refused. */
  asksForUsage: boolean;
  /** The parameter that takes the grammar of `response_format`: as text, or as a field of an object; null: `response_format` itself. */
  grammarIn: 'grammar' | 'structured_outputs' | null;
  /** Values of `reasoning_effort`, of which the nearest is sent; null: any. */
  efforts: readonly Effort[] | null;
  /** Turns reasoning on and off beside the effort; null: the effort alone does. */
  reasoningSwitch: 'thinking' | 'chat_template_kwargs' | null;
}
