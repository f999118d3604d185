import { expect, it } from 'vitest';
import { adaptTraits } from './adapt-traits.ts';
import { bedrockTraits } from './model-traits.ts';

const claude = bedrockTraits('anthropic.claude-opus-4-6-v1');
const nova = bedrockTraits('eu.amazon.nova-2-lite-v1:0');
const other = bedrockTraits('meta.llama3-3-70b-instruct-v1:0');
const refusal = (message: string) => JSON.stringify({ message });

it.each([
  ["This model doesn't support tool use in streaming mode.", other, { streamsTools: false }],
  ['system.0.cache_control.ttl: Extra inputs are not permitted', claude, { cachesHour: false }],
  ['The ttl of a cache point is only supported for Anthropic models', claude, { cachesHour: false }],
  ['Malformed input request: #/toolConfig/tools/1: extraneous key [cachePoint] is not permitted', claude, { cachesTools: false }],
  ['Malformed input request: #/toolConfig/tools/1: extraneous key [cachePoint] is not permitted', nova, { caches: false }],
  ['You invoked an unsupported model or your request did not allow prompt caching.', claude, { caches: false }],
  ['Malformed input request: extraneous key [top_k] is not permitted', claude, { takesTopK: false }],
  ['Malformed input request: #/inferenceConfig: extraneous key [topK] is not permitted', nova, { takesTopK: false }],
  ['`temperature`, `top_p` and `top_k` are not supported', claude, { takesSampling: false }],
  ['`temperature` may not be set for this model', claude, { takesSampling: false }],
  ["This model doesn't support the outputConfig.effort field.", claude, { takesEffort: false }],
  ['Malformed input request: extraneous key [reasoningConfig] is not permitted', nova, { takesEffort: false }],
  ['outputConfig.effort: "max" is not supported for this model', claude, { hasMaxEffort: false }],
  ["This model doesn't support the outputConfig.textFormat field.", claude, { takesSchema: false }],
  ['"thinking.type.adaptive" is not supported for this model. Use "output_config.effort".', claude, { thinking: 'budget' }],
] as const)('%s', (message, traits, changes) => {
  expect(adaptTraits(refusal(message), traits)).toEqual({ ...traits, ...changes });
});

it('are not changed by what is known already, so that no request is repeated unchanged', () => {
  expect(adaptTraits(refusal("This model doesn't support tool use in streaming mode."), { ...other, streamsTools: false })).toBeNull();
  expect(adaptTraits(refusal('cachePoint is not permitted'), other)).toBeNull();
  expect(adaptTraits(refusal('The ttl of a cache point is malformed'), claude)).toBeNull();
});
