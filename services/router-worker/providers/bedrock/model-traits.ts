import { type ModelTraits, traitsOf } from '../anthropic/model-traits.ts';

/** How a family of models takes what Converse has no field for, and what of Converse a model lacks. */
export interface BedrockTraits extends ModelTraits {
  /** The form of `additionalModelRequestFields`; `other`: reasoning can't be asked for. */
  family: 'claude' | 'nova' | 'gpt-oss' | 'other';
  takesTopK: boolean;
  /** Cache points. */
  caches: boolean;
  /** Cache points behind tools, and behind results of their calls. */
  cachesTools: boolean;
  /** Cache points that state an hour; without that the cache is kept for five minutes. */
  cachesHour: boolean;
  /** Tools in a request for a stream; false: a request with tools is for a whole answer. */
  streamsTools: boolean;
}

const OTHER: BedrockTraits = {
  family: 'other',
  thinking: 'budget',
  hasHighestEffort: false,
  hasMaxEffort: true,
  takesSampling: true,
  takesSchema: true,
  takesForcedTool: true,
  takesTopK: false,
  takesEffort: false,
  caches: false,
  cachesTools: false,
  cachesHour: false,
  streamsTools: true,
};

const CACHELESS_CLAUDE = /claude-(?:instant|v?2|3-(?:sonnet|haiku|opus)|3-5-sonnet-20240620)/;
const CLAUDE_BEFORE_4_5 = /claude-(?:instant|v?[23]|(?:opus|sonnet)-4(?!-[5-9](?!\d)))/;

/** Also of ids with a region or as an ARN; those of an application's inference profile name no model, and count as `other`. */
export function bedrockTraits(model: string): BedrockTraits {
  if (model.includes('anthropic.claude')) return claude(model);
  if (model.includes('amazon.nova')) return { ...OTHER, family: 'nova', takesTopK: true, takesEffort: model.includes('amazon.nova-2'), caches: true };
  if (model.includes('openai.gpt-oss')) return { ...OTHER, family: 'gpt-oss', takesEffort: true };
  return OTHER;
}

function claude(model: string): BedrockTraits {
  const caches = !CACHELESS_CLAUDE.test(model);
  const cachesHour = !CLAUDE_BEFORE_4_5.test(model);
  return { ...OTHER, ...traitsOf(model), family: 'claude', takesTopK: true, takesEffort: true, caches, cachesTools: caches, cachesHour };
}
