import { type ModelTraits, traitsOf } from '../anthropic/model-traits.ts';

/** How a family of models takes what Converse has no field for. */
export interface BedrockTraits extends ModelTraits {
  /** The form of `additionalModelRequestFields`; `other`: reasoning can't be asked for. */
  family: 'claude' | 'nova' | 'gpt-oss' | 'other';
}

const OTHER: BedrockTraits = {
  family: 'other',
  thinking: 'budget',
  hasHighestEffort: false,
  takesSampling: true,
  takesSchema: true,
  takesForcedTool: true,
};

/** Also of ids with a region or as an ARN; those of an application's inference profile name no model, and count as `other`. */
export function bedrockTraits(model: string): BedrockTraits {
  if (model.includes('anthropic.claude')) return { ...traitsOf(model), family: 'claude' };
  if (model.includes('amazon.nova')) return { ...OTHER, family: 'nova' };
  if (model.includes('openai.gpt-oss')) return { ...OTHER, family: 'gpt-oss' };
  return OTHER;
}

/** Models of other families refuse cache points. */
export function takesCachePoints({ family }: BedrockTraits): boolean {
  return family === 'claude' || family === 'nova';
}
