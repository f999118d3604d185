import { describe, expect, it } from 'vitest';
import { noAgentState } from '../agent-state.ts';
import type { PolicyEvaluation } from '../policies/policy-evaluation.ts';
import { testPolicy } from '../policies/test-support/test-policy.ts';
import { testRoutine } from '../policies/test-support/test-routine.ts';
import { type RoutineModel, routineModels } from '../routines/routine-model.ts';
import type { RowOf } from '../turn-row.ts';
import { guidanceOf } from './guidance-of.ts';

const policies = [
  testPolicy('leak', { condition: 'it leaks', action: 'ask for a photo' }),
  testPolicy('minor', { condition: 'it rains', action: 'mention it', criticality: 'low' }),
  testPolicy('seen', { condition: 'it is late', action: null }),
  testPolicy('always', { condition: null, action: 'be kind' }),
  testPolicy('price', { condition: 'you name a price', action: 'add the tax to it' }),
];

describe('rule 80: the reply’s guidance', () => {
  it('has policies as "when, then" lines, with the reason as data', () => {
    expect(linesOf({ policies: [{ id: 'leak', rationale: 'They said\n"drips"' }] })).toEqual([
      'Policies that apply to this reply:',
      '- When it leaks, then ask for a photo (It applies because: "They said\\n\\"drips\\"")',
    ]);
  });

  it('has no reason for policies of low criticality, and without a condition none either', () => {
    const applying = ['minor', 'always'].map((id) => ({ id, rationale: id === 'minor' ? 'because' : null }));

    expect(linesOf({ policies: applying }).slice(1)).toEqual(['- When it rains, then mention it', '- Always: be kind']);
  });

  it('leaves out observations, and policies that the bundle does not have', () => {
    const applying = ['seen', 'gone'].map((id) => ({ id, rationale: 'r' }));

    expect(linesOf({ policies: applying })).toEqual([]);
  });

  it('has the question of a disambiguation first', () => {
    const clarifications = [{ id: 'ask:seen', action: 'Ask which.', rationale: null }];

    expect(linesOf({ policies: [{ id: 'leak', rationale: null }], clarifications }).slice(1)).toEqual([
      '- Before all else: Ask which.',
      '- When it leaks, then ask for a photo',
    ]);
  });

  it('separates policies about what the agent is going to do, in the words of their evaluation', () => {
    const evaluation = {
      continuous: null,
      customerDependent: false,
      agentIntentionCondition: 'the agent names a price',
      internalAction: 'add the tax to the price',
    };
    const applying = ['leak', 'price'].map((id) => ({ id, rationale: null }));
    const lines = linesOf({ policies: applying }, new Map([['price', evaluation]]));

    expect(lines).toEqual([
      'Policies that apply to this reply:',
      '- When it leaks, then ask for a photo',
      '',
      'Policies that apply only if this reply really does what their condition says:',
      '- When the agent names a price, then add the tax to the price',
    ]);
  });

  it('rule 50: says of a tool step that none of its tools can be called, and nothing of one that has a tool', () => {
    const steps = [{ kind: 'tool', id: 'pay', tool_state: ['bank:pay', 'bank:note'] }];
    const models = routineModels({ routines: [testRoutine('refund', { title: 'Refund', steps })], macros: [], variable_sets: [] }, () => null);
    const lines = (unlisted: string[]) => linesOf({ steps: [{ routineId: 'refund', stepId: 'pay' }], unlisted }, new Map(), models);

    expect(lines(['bank:note', 'bank:pay']).slice(1)).toEqual([expect.stringMatching(/^- The current step of "Refund" can't be taken now.*promise nothing/)]);
    expect(lines(['bank:pay'])).toEqual([]);
    expect(lines([])).toEqual([]);
  });

  it('has the action of the evaluation for other policies too', () => {
    const evaluation = { continuous: null, customerDependent: false, agentIntentionCondition: null, internalAction: 'ask for a photo of the leak' };

    expect(linesOf({ policies: [{ id: 'leak', rationale: null }] }, new Map([['leak', evaluation]]))).toContain(
      '- When it leaks, then ask for a photo of the leak',
    );
  });
});

/** Without the rules, which end it. */
function linesOf(
  found: Partial<RowOf<'resolved'>>,
  policyEvaluations: ReadonlyMap<string, PolicyEvaluation> = new Map(),
  models: readonly RoutineModel[] = [],
): string[] {
  const resolved: RowOf<'resolved'> = { kind: 'resolved', policies: [], clarifications: [], steps: [], paths: {}, tracked: [], resolutions: [], ...found };
  const text = guidanceOf([{ kind: 'began', state: noAgentState }, resolved], { policies, routineModels: models, policyEvaluations });
  const [before = ''] = text.split('Rules for this reply:');
  expect(before).not.toBe(text);
  return before.trim() === '' ? [] : before.trim().split('\n');
}
