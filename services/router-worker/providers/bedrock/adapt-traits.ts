import { adaptTraits as adaptClaude } from '../anthropic/adapt-traits.ts';
import { errorIn } from '../http-stream/to-error.ts';
import { describeError } from './describe-error.ts';
import type { BedrockTraits } from './model-traits.ts';

const UNSUPPORTED = /not supported|only supported|unsupported|does not support|doesn't support|not permitted|not allow|deprecated/i;

/** Words of a refusal, and what they say of the model beside what Claude's say. The first that fits and changes something counts. */
const ADAPTATIONS: readonly (readonly [words: RegExp, traits: Partial<BedrockTraits>])[] = [
  [/tool use in streaming/i, { streamsTools: false }],
  [/\bttl\b/i, { cachesHour: false }],
  [/tool.{0,40}cache_?point|cache_?point.{0,40}tool/i, { cachesTools: false }],
  [/cache_?point|cache_?control|caching/i, { caches: false }],
  [/^(?!.*(?:temperature|top_?p)).*top_?k\b/is, { takesTopK: false }],
  // Refusals of a kind of thinking, or of the highest effort, name the effort to use in its place.
  [/^(?!.*(?:thinking|xhigh|["'`](?:low|medium|high|max)["'`])).*(?:output_?config.{0,3}effort|reasoning_?config|reasoning_?effort)/is, { takesEffort: false }],
];

/** The traits that a 400 shows; null for other errors. @param text the error's body */
export function adaptTraits(text: string, traits: BedrockTraits): BedrockTraits | null {
  const message = describeError(errorIn(text)).message ?? '';
  if (!UNSUPPORTED.test(message)) return adaptClaude(text, traits);
  const known: Record<string, unknown> = { ...traits };
  for (const [words, changes] of ADAPTATIONS) {
    const isNew = Object.entries(changes).some(([name, value]) => known[name] !== value);
    if (isNew && words.test(message)) return { ...traits, ...changes };
  }
  return adaptClaude(text, traits);
}
