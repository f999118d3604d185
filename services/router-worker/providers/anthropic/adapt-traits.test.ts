import { describe, expect, it } from 'vitest';
import { adaptTraits } from './adapt-traits.ts';
import { describeError } from './describe-error.ts';
import { traitsOf } from './model-traits.ts';

const refusal = (message: string) => JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message } });
const old = traitsOf('claude-sonnet-4-0');
const known = traitsOf('claude-opus-4-6');

describe('the traits that a refusal shows', () => {
  it.each([
    ['"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort".', old, { thinking: 'adaptive' }],
    ['adaptive thinking is not supported on this model', known, { thinking: 'budget' }],
    ['"thinking.type.disabled" is not supported for this model.', known, { thinking: 'always' }],
    ['`temperature` is deprecated for this model.', known, { takesSampling: false }],
    ['output_config.format: Extra inputs are not permitted', known, { takesSchema: false }],
    ['output_config.effort: Extra inputs are not permitted', known, { takesEffort: false }],
    ['This model does not support the effort parameter.', known, { takesEffort: false }],
    ['output_config.effort: "xhigh" is not supported', { ...known, hasHighestEffort: true }, { hasHighestEffort: false }],
    ['output_config.effort: "max" is not supported for this model. Use "low", "medium" or "high".', known, { hasMaxEffort: false }],
    ['output_config: Extra inputs are not permitted', known, { takesSchema: false, takesEffort: false }],
    ['tools.0.custom.strict: Extra inputs are not permitted', known, { takesSchema: false }],
    ['tool_choice: type "any" is not supported for this model', known, { takesForcedTool: false }],
  ] as const)('%s', (message, traits, changes) => {
    expect(adaptTraits(refusal(message), traits)).toEqual({ ...traits, ...changes });
  });

  it.each(['messages.0: all messages must have non-empty content', 'temperature: range: 0..1', '<html>Bad Request</html>'])('is nothing in %s', (message) => {
    expect(adaptTraits(message.startsWith('<') ? message : refusal(message), known)).toBeNull();
  });

  it('is nothing in a refusal of one effort, which says nothing of the others', () => {
    expect(adaptTraits(refusal('output_config.effort: "high" is not supported with this tool'), known)).toBeNull();
  });

  it('is nothing that is known already, so that no request is repeated unchanged', () => {
    expect(adaptTraits(refusal('`temperature` is not supported'), { ...known, takesSampling: false })).toBeNull();
  });
});

describe('the table of models', () => {
  it.each([
    ['claude-3-7-sonnet-20250219', { thinking: 'budget', takesSchema: false, takesSampling: true }],
    ['claude-sonnet-4-20250514', { thinking: 'budget', takesSchema: false }],
    ['claude-opus-4-1-20250805', { thinking: 'budget', takesSchema: true }],
    ['claude-haiku-4-5-20251001', { thinking: 'budget', takesSchema: true, takesSampling: true }],
    ['claude-sonnet-4-6', { thinking: 'adaptive', takesSampling: true, hasHighestEffort: false }],
    ['claude-opus-4-7', { thinking: 'adaptive', takesSampling: false, takesForcedTool: true }],
    ['claude-opus-5-20260601', { thinking: 'adaptive', takesSampling: false, takesForcedTool: true }],
    ['claude-fable-5', { thinking: 'always', takesForcedTool: true }],
    ['claude-sonnet-5-5', { thinking: 'always', takesForcedTool: false }],
    ['claude-haiku-5-5', { thinking: 'adaptive', takesSampling: false }],
    ['claude-harp-6', { thinking: 'adaptive', takesSampling: false }],
    ['some-other-model', { thinking: 'budget', takesSchema: false, takesSampling: true }],
  ])('%s', (model, traits) => {
    expect(traitsOf(model)).toMatchObject(traits);
  });
});

describe('the form of an error', () => {
  it.each([
    [
      { type: 'overloaded_error', message: 'Overloaded' },
      { type: 'overloaded_error', code: null },
    ],
    [{ type: 'invalid_request_error', message: 'prompt is too long: 210000 tokens > 200000 maximum' }, { code: 'context_length_exceeded' }],
    [{ type: 'invalid_request_error', message: 'Output blocked by content filtering policy' }, { code: 'content_policy_violation' }],
    [
      { type: 'invalid_request_error', message: 'Your credit balance is too low' },
      { code: 'billing_error', status: 402 },
    ],
    [
      { type: 'invalid_request_error', message: 'no', details: { error_code: 'tool_name_conflict' } },
      { code: 'tool_name_conflict', message: 'no' },
    ],
    ['plain words', { message: 'plain words' }],
    [null, { message: null, type: null, code: null }],
    [
      { message: 7, type: [], details: 'x' },
      { message: null, type: null, code: null },
    ],
  ])('%o', (error, expected) => {
    expect(describeError(error)).toMatchObject(expected);
  });
});
