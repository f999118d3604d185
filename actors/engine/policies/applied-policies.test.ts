import { describe, expect, it } from 'vitest';
import type { Policy } from '#shared/contracts/documents/policy.ts';
import { appliedAfter, policiesToTrack } from './applied-policies.ts';
import { testPolicy } from './test-support/test-policy.ts';

describe('rule 16: applied policies', () => {
  it.each<[string, Partial<Policy>, { applying?: boolean; applied?: boolean; continuous?: boolean }, boolean]>([
    ['a policy that applies', {}, {}, true],
    ['one of high criticality', { criticality: 'high' }, {}, true],
    ['one that does not apply', {}, { applying: false }, false],
    ['one that was applied', {}, { applied: true }, false],
    ['a continuous one', { continuous: true }, {}, false],
    ['one found to be continuous', {}, { continuous: true }, false],
    ['one that is not continuous, whatever was found', { continuous: false }, { continuous: true }, true],
    ['one of low criticality', { criticality: 'low' }, {}, false],
    ['an observation', { action: null }, {}, false],
    ['one without a condition', { condition: null }, {}, false],
    ['one that is not tracked', { track: false }, {}, false],
  ])('%s', (_, fields, { applying = true, applied = false, continuous }, expected) => {
    const evaluation = { continuous: continuous ?? null, customerDependent: false, agentIntentionCondition: null, internalAction: null };
    const found = policiesToTrack([testPolicy('p', fields)], {
      applying: new Set(applying ? ['p'] : []),
      applied: new Set(applied ? ['p'] : []),
      evaluations: new Map([['p', evaluation]]),
    });

    expect(found.map(({ id }) => id)).toEqual(expected ? ['p'] : []);
  });

  it('adds those whose action was taken, each once', () => {
    const verdicts = [
      { id: 'b', applies: true, rationale: '' },
      { id: 'c', applies: false, rationale: '' },
      { id: 'a', applies: true, rationale: '' },
    ];

    expect(appliedAfter(['x', 'a'], { verdicts, clarification: null })).toEqual(['x', 'a', 'b']);
  });
});
