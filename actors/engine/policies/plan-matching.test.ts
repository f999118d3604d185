import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Policy } from '#shared/contracts/documents/policy.ts';
import { matchBatch } from './match-batch.ts';
import { type MatchingFacts, planMatching } from './plan-matching.ts';
import type { PolicyClass } from './policy-class.ts';
import type { PolicyEvaluation } from './policy-evaluation.ts';
import { testPolicy } from './test-support/test-policy.ts';

const unknown: PolicyEvaluation = { continuous: null, customerDependent: false, agentIntentionCondition: null, internalAction: null };
const options = ['policy:a', 'policy:b'];

type Case = [
  rule: number,
  what: string,
  policy: Partial<Policy>,
  state: { applied?: boolean; evaluation?: Partial<PolicyEvaluation> },
  expected: PolicyClass | 'certain',
];

const cases: Case[] = [
  [4, 'a policy without a condition', { condition: null }, {}, 'certain'],
  [4, 'one that was applied', { condition: null }, { applied: true }, 'certain'],
  [4, 'one of low criticality', { condition: null, criticality: 'low' }, {}, 'certain'],
  [5, 'an observation', { action: null }, {}, 'observational'],
  [5, 'an observation of low criticality', { action: null, criticality: 'low' }, {}, 'observational'],
  [5, 'an observation that held before', { action: null }, { applied: true }, 'observational'],
  [6, 'a policy that was never applied', {}, {}, 'actionable'],
  [6, 'a continuous one that was applied', { continuous: true }, { applied: true }, 'actionable'],
  [6, 'one found to be continuous', {}, { applied: true, evaluation: { continuous: true } }, 'actionable'],
  [6, 'one that is not tracked', { track: false }, { applied: true }, 'actionable'],
  [6, 'a customer-dependent one that was never applied', {}, { evaluation: { customerDependent: true } }, 'actionable'],
  [7, 'one that was applied', {}, { applied: true }, 'previously-applied'],
  [7, 'one that is not continuous, whatever was found', { continuous: false }, { applied: true, evaluation: { continuous: true } }, 'previously-applied'],
  [7, 'one without an evaluation', {}, { applied: true, evaluation: {} }, 'previously-applied'],
  [8, 'one that depends on the customer', {}, { applied: true, evaluation: { customerDependent: true } }, 'customer-dependent'],
  [9, 'one of low criticality', { criticality: 'low' }, {}, 'low-criticality'],
  [9, 'one of low criticality that was applied', { criticality: 'low' }, { applied: true }, 'low-criticality'],
  [10, 'an observation that disambiguates', { action: null, disambiguates: options }, {}, 'disambiguation'],
];

describe('the question for each policy', () => {
  it.each(cases)('rule %i: %s', (_, __, fields, { applied = false, evaluation }, expected) => {
    const { certain, batches } = planMatching({
      candidates: [testPolicy('p', fields)],
      evaluations: new Map(evaluation === undefined ? [] : [['p', { ...unknown, ...evaluation }]]),
      appliedPolicyIds: new Set(applied ? ['p'] : []),
      batchSize: 5,
    });

    expect({ certain, batches }).toEqual(
      expected === 'certain' ? { certain: ['p'], batches: [] } : { certain: [], batches: [{ id: `${expected}-1`, class: expected, policyIds: ['p'] }] },
    );
  });
});

describe('rule 11: batches', () => {
  it('cuts 12 policies of one class at 5 into 3 calls, in order', () => {
    const { batches } = planMatching(factsOf(policies(12), 5));

    expect(batches.map(({ id, policyIds }) => [id, policyIds.length])).toEqual([
      ['actionable-1', 5],
      ['actionable-2', 5],
      ['actionable-3', 2],
    ]);
    expect(batches.flatMap(({ policyIds }) => policyIds)).toEqual(policies(12).map(({ id }) => id));
  });

  it('mixes no classes', () => {
    const { batches } = planMatching(factsOf([testPolicy('a'), testPolicy('b', { action: null }), testPolicy('c')], 5));

    expect(batches.map(({ id, policyIds }) => [id, policyIds])).toEqual([
      ['observational-1', ['b']],
      ['actionable-1', ['a', 'c']],
    ]);
  });

  it('rule 9: puts up to 10 policies of low criticality into a call, whatever the batch size', () => {
    const low = policies(21, { criticality: 'low' });

    for (const size of [1, 5, 50]) expect(planMatching(factsOf(low, size)).batches.map(({ policyIds }) => policyIds.length)).toEqual([10, 10, 1]);
  });

  it('rule 10: asks about each ambiguity by itself', () => {
    const { batches } = planMatching(factsOf(policies(3, { action: null, disambiguates: options }), 5));

    expect(batches.map(({ policyIds }) => policyIds.length)).toEqual([1, 1, 1]);
  });

  it('plans nothing for no policies', () => {
    expect(planMatching(factsOf([], 5))).toEqual({ certain: [], batches: [] });
  });

  it('asks about each policy with a condition exactly once, and no batch is larger than allowed', () => {
    const kinds: Partial<Policy>[] = [{}, { action: null }, { criticality: 'low' }, { condition: null }, { action: null, disambiguates: options }];
    fc.assert(
      fc.property(fc.array(fc.nat(kinds.length - 1), { maxLength: 500 }), fc.integer({ min: 1, max: 600 }), (chosen, size) => {
        const given = chosen.map((kind, index) => testPolicy(`p${index}`, kinds[kind]));
        const { certain, batches } = planMatching(factsOf(given, size));
        expect([...certain, ...batches.flatMap(({ policyIds }) => policyIds)].toSorted()).toEqual(given.map(({ id }) => id).toSorted());
        expect(batches.map((batch) => matchBatch.parse(batch))).toEqual(batches);
        expect(new Set(batches.map(({ id }) => id)).size).toBe(batches.length);
        for (const { class: name, policyIds } of batches) expect(policyIds.length).toBeLessThanOrEqual(name === 'low-criticality' ? 10 : size);
      }),
      { numRuns: 50 },
    );
  });
});

function factsOf(candidates: Policy[], batchSize: number): MatchingFacts {
  return { candidates, evaluations: new Map(), appliedPolicyIds: new Set(), batchSize };
}

function policies(count: number, fields: Partial<Policy> = {}): Policy[] {
  return Array.from({ length: count }, (_, index) => testPolicy(`p${index}`, fields));
}
