import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type MatchAnswer, matchAnswer } from './match-answer.ts';
import { matchItems } from './match-batch.ts';
import { matchedPolicies, type StagedMatch } from './matched-policies.ts';
import type { PolicyClass } from './policy-class.ts';
import { testPolicy } from './test-support/test-policy.ts';
import { testRoutine } from './test-support/test-routine.ts';

const documents = {
  policies: [
    testPolicy('a'),
    testPolicy('b', { labels: ['kind'] }),
    testPolicy('c'),
    testPolicy('always', { condition: null }),
    testPolicy('unclear', { action: null, disambiguates: ['policy:a', 'tag:kind', 'routine:refund'] }),
    testPolicy('off', { enabled: false, labels: ['kind'] }),
  ],
  routines: [testRoutine('refund', { title: 'Refunds' }), testRoutine('repair', { conditions: ['it leaks', 'it is broken'] })],
};

describe('what matching found', () => {
  it('rule 4: policies without a condition apply', () => {
    const { policies, evidence } = matchedPolicies(documents, ['always'], []);

    expect([...policies]).toEqual([['always', null]]);
    expect(evidence).toEqual([{ id: 'always', applies: true, rationale: null, class: 'certain', batch: null, model: null, ms: null }]);
  });

  it('rule 17: each verdict is recorded with its class, batch, model and time', () => {
    const { policies, evidence } = matchedPolicies(documents, [], [staged(1, 'actionable', { a: true, b: false })]);

    expect([...policies.keys()]).toEqual(['a']);
    expect(evidence).toEqual([
      { id: 'a', applies: true, rationale: 'a: true', class: 'actionable', batch: '1/actionable-1', model: 'm', ms: 20 },
      { id: 'b', applies: false, rationale: 'b: false', class: 'actionable', batch: '1/actionable-1', model: 'm', ms: 20 },
    ]);
  });

  it('a routine is activated by one of its conditions, and is no policy', () => {
    const { policies, activatedRoutineIds } = matchedPolicies(
      documents,
      [],
      [staged(1, 'observational', { 'routine:repair:0': false, 'routine:repair:1': true, 'routine:refund:0': false })],
    );

    expect([...activatedRoutineIds]).toEqual(['repair']);
    expect([...policies]).toEqual([]);
  });

  it('rule 13: what applied in one pass does so for the turn, for its first reason', () => {
    const passes = [staged(1, 'actionable', { a: true, b: false }), staged(2, 'actionable', { a: false, b: true })];

    expect([...matchedPolicies(documents, [], passes).policies]).toEqual([
      ['a', 'a: true'],
      ['b', 'b: true'],
    ]);
  });

  it('rule 10: a question replaces the policy that found the ambiguity and all that may be meant', () => {
    const found = matchedPolicies(
      documents,
      ['always'],
      [
        staged(1, 'actionable', { a: true, b: true, c: true }),
        staged(1, 'observational', { 'routine:refund:0': true, 'routine:repair:0': true }),
        staged(1, 'disambiguation', { unclear: true }, { action: 'Ask which.', options: ['policy:a', 'policy:b'] }),
      ],
    );

    expect([...found.policies.keys()]).toEqual(['c', 'always']);
    expect([...found.activatedRoutineIds]).toEqual(['repair']);
    expect(found.clarifications).toEqual([{ id: 'ask:unclear', action: 'Ask which.', rationale: 'unclear: true' }]);
    expect([...found.withheld].toSorted()).toEqual(['policy:a', 'policy:b', 'policy:unclear', 'routine:refund']);
  });

  it('rule 10: without an ambiguity everything stays', () => {
    const found = matchedPolicies(documents, [], [staged(1, 'actionable', { a: true }), staged(1, 'disambiguation', { unclear: true })]);

    expect([...found.policies.keys()]).toEqual(['a', 'unclear']);
    expect(found).toMatchObject({ clarifications: [], withheld: new Set() });
  });

  it('ignores verdicts about policies that the bundle does not have, or has disabled', () => {
    expect([...matchedPolicies(documents, [], [staged(1, 'actionable', { gone: true, off: true })]).policies]).toEqual([]);
  });

  it('depends on no order of results', () => {
    const results = [
      staged(1, 'actionable', { a: true, b: false }),
      staged(1, 'observational', { 'routine:repair:0': true }),
      staged(2, 'actionable', { a: false, b: true }),
      staged(1, 'disambiguation', { unclear: true }, { action: 'Ask.', options: [] }),
      staged(2, 'low-criticality', { c: true }),
    ];
    const expected = matchedPolicies(documents, ['always'], results);
    fc.assert(
      fc.property(fc.shuffledSubarray(results, { minLength: results.length }), (shuffled) => {
        expect(matchedPolicies(documents, ['always'], shuffled)).toEqual(expected);
      }),
    );
  });
});

it('reads answers that were staged before there were ambiguities', () => {
  const verdicts = [{ id: 'a', applies: true, rationale: null }];

  expect(matchAnswer.parse({ verdicts })).toEqual({ verdicts, clarification: null });
});

describe('the texts of a batch', () => {
  const evaluation = { continuous: null, customerDependent: false, agentIntentionCondition: 'the agent will A', internalAction: 'do A now' };

  it('rule 15: are those of the boot-time evaluation', () => {
    expect(itemsOf(['a'], new Map([['a', evaluation]]))).toEqual([{ id: 'a', condition: 'the agent will A', action: 'do A now', options: [] }]);
  });

  it('rule 15: are the policy’s own without one, and observations have no action', () => {
    const partly = { ...evaluation, agentIntentionCondition: null };

    expect(itemsOf(['a'])).toEqual([{ id: 'a', condition: 'a holds', action: 'do a', options: [] }]);
    expect(itemsOf(['a'], new Map([['a', { ...partly, internalAction: null }]]))).toEqual(itemsOf(['a']));
    expect(itemsOf(['unclear'], new Map([['unclear', partly]]))).toMatchObject([{ condition: 'unclear holds', action: null }]);
  });

  it('keep the order of the batch, and contain conditions of routines', () => {
    expect(itemsOf(['c', 'routine:repair:1', 'a']).map(({ condition }) => condition)).toEqual(['c holds', 'it is broken', 'a holds']);
  });

  it('rule 10: have the options in words, without disabled ones', () => {
    expect(itemsOf(['unclear'])[0]?.options).toEqual([
      { reference: 'policy:a', text: 'do a' },
      { reference: 'policy:b', text: 'do b' },
      { reference: 'routine:refund', text: 'Refunds' },
    ]);
  });

  it.each(['gone', 'routine:repair:2', 'routine:gone:0'])('throws for %s, which the bundle does not have', (id) => {
    expect(() => itemsOf([id])).toThrow(TypeError);
  });
});

function itemsOf(policyIds: string[], evaluations: Parameters<typeof matchItems>[2] = new Map()) {
  return matchItems({ id: 'x-1', class: 'actionable', policyIds }, documents, evaluations);
}

function staged(pass: number, name: PolicyClass, verdicts: Record<string, boolean>, clarification: MatchAnswer['clarification'] = null): StagedMatch {
  return {
    pass,
    batch: { id: `${name}-1`, class: name, policyIds: Object.keys(verdicts) },
    answer: { verdicts: Object.entries(verdicts).map(([id, applies]) => ({ id, applies, rationale: `${id}: ${applies}` })), clarification },
    model: 'm',
    ms: 20,
  };
}
